import numpy as np

from skts import SubsequenceSearch

rng = np.random.default_rng(1)
x = rng.standard_normal(5000).cumsum()
query = rng.standard_normal(64).cumsum()

for fraction in (0.0, 0.05, 0.1, 0.2):
    search = SubsequenceSearch(window=int(fraction * 64)).fit([x])  # the suite rounds down
    (distance,), ((_, start),) = (found[0] for found in search.kneighbors([query], n_neighbors=1))
    print(f"{fraction:.2f}  {start}  {distance:.6f}")
