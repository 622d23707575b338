import _ucrdtw
import numpy as np

rng = np.random.default_rng(1)
x = rng.standard_normal(5000).cumsum()
query = rng.standard_normal(64).cumsum()

for fraction in (0.0, 0.05, 0.1, 0.2):
    start, distance = _ucrdtw.ucrdtw(x, query, fraction)
    print(f"{fraction:.2f}  {start}  {distance:.6f}")
