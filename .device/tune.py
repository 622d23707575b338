import json, os, sys, itertools
import numpy as np, cupy as cp
sys.path.insert(0, '.')
from skts.engines.cupy import dtw
from skts.engines.cupy._programs import DTWKernel, source, OPTIONS, choose_dtw, column_counts
from skts.engines import Series
from skts.engines._certify import Rescaling
SRC = source('dtw.cu')
def module(name, blocks):
    code = SRC.replace('blocks_per_sm<T>(K, C))', f'{blocks})')
    return cp.RawModule(code=code, options=OPTIONS, name_expressions=(name,)).get_function(name)
def dev(n, L, seed, C=1):
    v = np.random.default_rng(seed).normal(size=(n, C, L))
    return dtw.rescale(dtw.upload(Series(v, np.full(n, L))), Rescaling.of(v))
def timed(f, n=7):
    f(); ts=[]
    for _ in range(n):
        a,b=cp.cuda.Event(),cp.cuda.Event(); a.record(); f(); b.record(); b.synchronize(); ts.append(cp.cuda.get_elapsed_time(a,b)/1e3)
    return float(np.median(ts))
def launch(f, k, rows, cols, out, edges, grid):
    n, m = rows.shape[2], cols.shape[2]
    f((grid,), (128,), (rows.values, rows.lengths, np.int32(n), cols.values, cols.lengths, np.int32(m), 0, np.int32(out.size), np.int32(out.shape[1]), np.int32(k.group), edges, np.int32(dtw.edge_length(n)), np.int32(0), out))
res=[]
def trial(L, K, G, R, blocks, nq, nc):
    k = DTWKernel('float', K, 1, R, K*G < L, G)
    f = module(k.name, blocks)
    rows, cols = dev(nq, L, 1), dev(nc, L, 2)
    out = cp.full((nq, nc), cp.nan, cp.float32)
    grid = dtw.groups_in_flight(k, out.size, L, 2**33) * G // 128
    edges = cp.zeros(grid*128//G * dtw.edge_length(L) if k.strips else 1, cp.float32)
    t = timed(lambda: launch(f, k, rows, cols, out, edges, grid))
    tc = nq*nc*float(L)*L/t/1e12
    r = dict(L=L,K=K,G=G,R=R,blocks=blocks,regs=f.num_regs,local=f.local_size_bytes,T=round(tc,3),sum=float(out.sum()))
    res.append(r); print(r, flush=True)
for R,b in itertools.product((1,2),(4,5,6)):
    trial(128,32,4,R,b,256,16384)
    trial(512,32,16,R,b,128,4096)
    trial(1024,32,32,R,b,64,2048)
for R,b in itertools.product((1,2),(7,8,9)):
    trial(512,16,32,R,b,128,4096)
for b in (3,4,5):
    trial(2048,32,32,2,b,32,1024)
    trial(1092,36,32,2,b,64,2048)
for b in (2,3): trial(2048,64,32,2,b,32,1024)
trial(100,28,4,2,5,256,16384); trial(100,12,8,2,8,256,16384); trial(427,28,16,2,5,128,4096); trial(637,20,32,2,7,128,2048)
for L,K,G in ((24,24,1),(24,12,2),(24,8,4),(60,16,4),(60,32,2),(60,8,8)):
    trial(L,K,G,2,8 if K<=16 else 5,512,32768)
json.dump(res, open(os.environ.get('OUT','.')+'/tune.json','w'))
