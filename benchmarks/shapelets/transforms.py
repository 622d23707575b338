"""asv benchmarks of the shapelet transformer: time, peak memory and accuracy.

Sizes go by decades. An engine that is not available here, or does not know the work, is skipped.
"""

import numpy as np
from sklearn.linear_model import RidgeClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks._engines import ENGINES, skip_unless_available
from skts import ShapeletTransformer
from skts.datasets import load_gunpoint, make_cylinder_bell_funnel


class Transform:
    """Drawn shapelets on one thread: choice, thresholds, features."""

    params = [ENGINES, [(20, 100, 1_000), (100, 400, 1_000), (100, 400, 10_000)]]
    param_names = ["engine", "series, points, shapelets"]

    def setup(self, engine, shape):
        skip_unless_available(engine)
        n, width, count = shape
        self.data = make_cylinder_bell_funnel(n, width, random_state=0)
        self.model = ShapeletTransformer(
            max_candidates=count, random_state=0, engine=engine, n_jobs=1
        )
        self.model.fit(*self.data).transform(self.data[0])

    def time_fit(self, engine, shape):
        self.model.fit(*self.data)

    def time_transform(self, engine, shape):
        self.model.transform(self.data[0])

    def peakmem_transform(self, engine, shape):
        self.model.transform(self.data[0])


class Best:
    """The best of all candidates of a length on one thread, dilated or not."""

    params = [ENGINES, ["information_gain", "f_statistic"]]
    param_names = ["engine", "criterion"]

    def setup(self, engine, criterion):
        skip_unless_available(engine)
        self.data = make_cylinder_bell_funnel(20, 100, random_state=0)
        self.model = ShapeletTransformer(
            max_candidates=None, lengths=[20], criterion=criterion, engine=engine, n_jobs=1
        )
        self.model.fit(*self.data)

    def time_fit(self, engine, criterion):
        self.model.fit(*self.data)


class Pipeline:
    """The hand movements that come with the package, by a linear model of drawn shapelets."""

    params = [ENGINES]
    param_names = ["engine"]

    def setup(self, engine):
        skip_unless_available(engine)
        self.train = load_gunpoint(split="train", return_X_y=True)
        self.test = load_gunpoint(split="test", return_X_y=True)
        transformer = ShapeletTransformer(max_candidates=2_000, random_state=0, engine=engine)
        head = RidgeClassifierCV(np.logspace(-3, 3, 13))
        self.model = make_pipeline(transformer, StandardScaler(), head).fit(*self.train)

    def time_fit(self, engine):
        self.model.fit(*self.train)

    def time_predict(self, engine):
        self.model.predict(self.test[0])

    def track_accuracy(self, engine):
        return float(self.model.score(*self.test))
