"""The other end of `_rounds.py`: one library at one piece of work, in its own process.

A worker script holds a class for each library and calls `main`; it is run as

    python SCRIPT LIBRARY REQUEST.npz ANSWER.npz

by the interpreter of that library's environment, so it needs nothing but NumPy and the library.
The request holds the arrays of the work. After a warm-up the worker prints `ready`; then, for
every line that it reads, it does the work once and prints the wall seconds and the processor
seconds that this took; when its input ends, it writes the result of the last round.
"""

import json
import sys
import time
from importlib.metadata import distributions
from pathlib import Path
from platform import python_version

import numpy as np


def main(prepare, estimator):
    """Serve the rounds of `prepare(library, request)`: two functions, warm-up and work.

    A third may follow: it makes the answer, which is compared, of what the work returns. The
    kernels of `estimator` are compiled before: in a fresh process skts leaves small work to NumPy
    until they pay, and rounds would be of either.
    """
    library, request_path, answer_path = sys.argv[1:]
    # scripts of this folder are not to be taken for packages, `profile` or `kshape`
    here = Path(__file__).resolve().parent
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != here]
    if library == "skts":
        import skts

        skts.warm_up("numba", [getattr(skts, estimator)])
    with np.load(request_path) as file:
        warm_up, work, *answer = prepare(library, dict(file))
    warm_up()
    print("ready", flush=True)
    result = None
    for _ in sys.stdin:
        wall, processor = time.perf_counter(), time.process_time()
        result = work()
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        print("time", wall, processor, flush=True)
    for make in answer:
        result = make(result)
    versions = {"python": python_version()}
    for found in distributions():
        # of two versions the one that comes first is imported
        versions.setdefault(found.metadata["Name"].lower(), found.version)
    np.savez(answer_path, result=np.asarray(result), versions=json.dumps(versions))
