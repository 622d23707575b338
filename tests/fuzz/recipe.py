"""`Recipe`: how one public callable is drawn, called, and compared with the oracle."""

from __future__ import annotations

import functools
import importlib.util
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from . import oracle, oracle_elastic
from .case import LISTS, UNSEEDED, Case, Sample
from .compare import check, close, same
from .draw import Draw

__all__ = [
    "EXEMPT",
    "RECIPES",
    "How",
    "Recipe",
    "check_output",
    "check_rows",
    "draw_state",
    "draw_window",
    "ints_only",
    "points_of",
    "relate_a_query_alone",
    "scaled",
    "warp_of",
]

#: What is optional may be missing on a machine with a GPU.
HAS_PANDAS = importlib.util.find_spec("pandas") is not None
#: Series that may be long, at most.
FEW = 4
#: Recipes by the name of what they call.
RECIPES: dict[str, Recipe] = {}

#: Public callables that are not fuzzed, and why.
EXEMPT = {
    "skts.base.SeriesMixin": "a base class; every estimator is one",
    "skts.base.as_host": "returns what it is given, or fetches it from a GPU: test_gpu_arrays",
    "skts.base.check_layout": "an error, a warning or nothing: test_wrong_uses",
    "skts.base.check_one": "check_series for one; every distance of two series calls it",
    "skts.base.check_target": "labels; every classifier calls it",
    "skts.base.transposed": "text of messages: test_wrong_uses",
    "skts.config_context": "settings: every case runs inside of it",
    "skts.datasets.fetch_ucr": "downloads files",
    "skts.datasets.load_arrow_head": "a stored file",
    "skts.datasets.load_ecg": "a stored file",
    "skts.datasets.load_gunpoint": "a stored file",
    "skts.datasets.make_cylinder_bell_funnel": "draws with NumPy alone",
    "skts.datasets.make_planted_motifs": "draws with NumPy alone",
    "skts.datasets.make_random_walk": "draws with NumPy alone",
    "skts.datasets.make_shifted_shapes": "draws with NumPy alone",
    "skts.datasets.make_two_patterns": "draws with NumPy alone",
    "skts.datasets.make_warped_shapes": "draws with NumPy alone",
    "skts.datasets.read_series": "reads files; hostile ones are the matter of tests of faults",
    "skts.datasets.read_train_test": "reads files",
    "skts.get_config": "a setting",
    "skts.set_config": "a setting",
    "skts.show_engines": "a report",
    "skts.show_versions": "a report",
    "skts.warm_up": "compiles, and returns nothing",
}
#: Names under which no callable computes anything.
EXEMPT_PARTS = {
    "skts.exceptions": "classes of exceptions",
    "skts.plotting": "pictures",
}
#: Methods that scikit-learn brings and that compute nothing.
EXEMPT_METHODS = {
    "get_metadata_routing": "scikit-learn's routing",
    "get_params": "scikit-learn's",
    "set_fit_request": "scikit-learn's routing",
    "set_params": "scikit-learn's",
    "set_predict_request": "scikit-learn's routing",
    "set_score_request": "scikit-learn's routing",
    "set_transform_request": "scikit-learn's routing",
}


@functools.cache
def parameters_of(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Parameters of a callable, looked up once: that takes longer than many a case."""
    return inspect.signature(function).parameters


class How(NamedTuple):
    """Options that must not change an answer: handed to every call.

    Attributes
    ----------
    engine : str
        The engine.
    n_jobs, verbose : int or None
        As in the package.
    """

    engine: str
    n_jobs: int | None = None
    verbose: int = 0

    def options(self, function: Callable[..., Any]) -> dict[str, Any]:
        """The options, of these, that a callable takes."""
        known = parameters_of(function)
        return {name: value for name, value in self._asdict().items() if name in known}


class Recipe:
    """How a callable is drawn, called and judged.

    A subclass names its `target`, and is registered by being defined. `draw` makes a case, `call`
    returns named arrays, `check` raises `Failure`, `relations` maps names to methods that call
    once more and compare.
    """

    name: ClassVar[str] = ""
    #: Parts of the outcome that engines, or batches on a GPU, may round differently, and how far
    #: apart they may be.
    loose: ClassVar[dict[str, float]] = {}
    #: Share of the cases whose series are long, where these are few, or else fit many instances of
    #: kernels of a GPU: they are run with many.
    long: ClassVar[float] = 0.0
    #: Names of relations that may be drawn.
    relations: ClassVar[tuple[str, ...]] = ()
    #: Methods that are called, of estimators.
    methods: ClassVar[tuple[str, ...]] = ()
    #: Whether the answer is the same for every seed.
    any_seed: ClassVar[bool] = False
    #: Parameters that are handed over but are neither data nor options of the case.
    handed: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        if cls.name:
            RECIPES[cls.name] = cls()

    @property
    def target(self) -> Any:
        """The callable."""
        module, _, name = self.name.rpartition(".")
        return getattr(__import__(module, fromlist=[name]), name)

    @property
    def defaults(self) -> dict[str, Any]:
        """Default values of options, to which a case shrinks."""
        known = parameters_of(self.target)
        return {
            name: each.default for name, each in known.items() if each.default is not each.empty
        }

    def draw(self, d: Draw) -> Case:
        """Make a case."""
        raise NotImplementedError

    def call(self, case: Case, how: How) -> dict[str, np.ndarray]:
        """Call the package."""
        raise NotImplementedError

    def check(self, case: Case, found: dict[str, np.ndarray]) -> None:
        """Compare with the oracle."""
        raise NotImplementedError

    def agree(self, name: str, found: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> None:
        """Compare two outcomes: bit by bit, but for parts that may be rounded differently."""
        check(found.keys() == wanted.keys(), f"{name}: parts", f"{list(found)}, {list(wanted)}")
        for key in found:
            allowed = next((v for part, v in self.loose.items() if key.startswith(part)), None)
            if allowed is None:
                same(f"{name} {key}", found[key], wanted[key])
            else:
                close(f"{name} {key}", found[key], wanted[key], allowed, allowed)

    def refuses(self, case: Case) -> bool:
        """Whether a ValueError is the right answer."""
        return False

    def settles(self, case: Case) -> bool:
        """Whether bits must be the same on one engine alone and in a batch."""
        return True

    def repeats(self, case: Case) -> bool:
        """Whether a second call gives the same answer: without a seed others may be drawn."""
        return self.any_seed or not case.unseeded

    def keeps_bits(self, case: Case, engine: str) -> bool:
        """Whether bits of an engine must be the same with any setting."""
        return self.settles(case)

    def possible(self, case: Case) -> bool:
        """Whether a case that was cut is one that could be drawn."""
        samples = [one for one in case.data.values() if isinstance(one, Sample)]
        return all(len(one) for one in samples) and (
            len({len(x) for one in samples for x in one.series}) == 1
        )

    def relate(
        self, case: Case, found: dict[str, np.ndarray], call: Callable[[Case], dict]
    ) -> None:
        """Check the relation that the case names; "scale:7" calls ``scale(..., 7)``."""
        name, _, value = case.relation.partition(":")
        more = (int(value),) if value else ()
        if name == "scale" and case.options.get("precision") == "float32":
            return  # what has no certificate has the range of float32
        getattr(self, f"relate_{name}")(case, found, call, *more)

    def relate_output(self, case: Case, found: dict, call: Callable) -> None:
        """See `check_output`, which estimators call while they are fitted."""

    def draw_relation(self, d: Draw) -> str | None:
        """A relation, or none."""
        count = len(self.relations)
        name = d.pick("relation", (None, *self.relations), (max(1, count), *[1] * count))
        return f"scale:{d.whole(-400, 400)}" if name == "scale" else name


# -- pieces that recipes share


def draw_window(
    d: Draw, longest: int, types: dict[str, str], option: str = "window"
) -> float | None:
    """A band: none, points, or a fraction; sometimes as a NumPy scalar."""
    kind = d.pick(option, ("none", "zero", "points", "wide", "fraction"), (2, 1, 3, 1, 3))
    if kind == "none":
        return None
    if kind == "fraction":
        value = float(d.rng.choice([0.0, 0.03, 0.1, 0.2, 1 / 3, 0.5, 0.99, 1.0, d.rng.random()]))
        kind = d.pick(f"{option} float", (None, "float64", "float32"), (6, 1, 1))
        if kind is not None:
            types[option] = kind
            value = float(getattr(np, kind)(value))
        return value
    kind_of_int = d.pick(f"{option} int", (None, "int64", "int16", "uint8"), (6, 1, 1, 1))
    if kind_of_int is not None:
        types[option] = kind_of_int
    if kind == "zero":
        return 0
    if longest > 128 and d.chance(0.5):  # bands that threads own, or lanes
        return d.whole(1, 140)
    return (
        d.whole(1, max(1, longest // 2)) if kind == "points" else d.whole(1, min(255, 2 * longest))
    )


def draw_state(d: Draw, types: dict[str, str], option: str = "random_state") -> None:
    """Draw how a seed is handed over: as it is, as a RandomState of it, or not at all."""
    kind = d.pick(f"{option} as", ("int", "RandomState", UNSEEDED), (6, 1, 1))
    if kind != "int":
        types[option] = kind


def warp_of(case: Case, prefix: str = "") -> oracle.Warp:
    """The oracle's options of a case."""
    known = {name: case.options[name] for name in oracle.Warp._fields if name in case.options}
    return oracle.Warp(**known)


def draw_warp(d: Draw, longest: int, types: dict[str, str], *, metric: bool = True) -> dict:
    """Options of a distance under warping."""
    options: dict[str, Any] = {}
    if metric:
        options["metric"] = d.pick("metric", ("dtw", "dog_keeper"), (2, 1))
    options["cost"] = d.pick("cost", ("squared", "absolute"), (2, 1))
    options["alignment"] = d.pick(
        "alignment", ("global", "subsequence", "supersequence"), (4, 1, 1)
    )
    options["window"] = None
    if options["alignment"] == "global":
        options["window"] = draw_window(d, longest, types)
    return options


def draw_metric(d: Draw, samples: Sequence[Sample], types: dict[str, str]) -> dict:
    """A distance by its name, with its parameters and options."""
    longest = max(int(one.lengths.max()) for one in samples)
    known = oracle_elastic.PARAMETERS
    names = [name for name in known if fit_for({"metric": name}, samples)]
    metric = d.pick("metric", names)
    given = {name: d.pick(name, values) for name, (_, values) in known[metric].items()}
    options: dict[str, Any] = {
        "metric": metric,
        "metric_params": (d.pick("metric_params", ("none", "some")) == "some" and given) or None,
        "cost": d.pick("cost", ("squared", "absolute"), (2, 1)),
        "alignment": "global",
        "window": None,
    }
    if metric in ("dtw", "dog_keeper", "frechet", "ddtw"):
        options["alignment"] = d.pick(
            "alignment", ("global", "subsequence", "supersequence"), (4, 1, 1)
        )
    if metric != "euclidean" and options["alignment"] == "global":
        options["window"] = draw_window(d, longest, types)
    return options


def fit_for(options: dict, samples: Sequence[Sample]) -> bool:
    """Whether a distance is defined for series of these lengths."""
    lengths = {int(n) for one in samples for n in one.lengths}
    if options["metric"] == "ddtw":
        return min(lengths) >= 3
    return options["metric"] != "euclidean" or len(lengths) == 1


def shapes(
    d: Draw,
    count: int,
    most: int,
    *,
    channels: Sequence[int] = (1, 2, 3),
    equal: float = 0.5,
    long: float = 0.0,
    furthest: int = 1700,
) -> list[tuple[int, int]]:
    """Shapes of so many series: of one length, or of several; of few, a share `long` is long."""
    # what they take grows with the square of their length
    far = long > 0 and count <= FEW and d.pick("long", (False, True), (1 - long, long))
    depth = d.pick("channels", channels, [6.0 - 3 * far, 2.0, 1.0 + far][: len(channels)])
    if d.pick("lengths", ("equal", "unequal"), (equal, 1 - equal)) == "equal":
        return [(depth, d.long(furthest) if far else d.size(1, most))] * count
    return [
        (depth, d.long(furthest) if far and d.chance(0.7) else d.size(1, most))
        for _ in range(count)
    ]


def ints_only(*samples: Sample) -> bool:
    """Whether all values are small whole numbers, so that sums of squares have no rounding."""
    return all(
        np.array_equal(one, np.round(one)) and np.abs(one).max(initial=0) < 2**20
        for sample in samples
        for one in sample.series
    )


def points_of(given: float | None, length: int, share: float, *, least: int = 0) -> int:
    """Points of a number or fraction of a window; of None, a share of it and at least so many."""
    if isinstance(given, int):
        return given
    points = math.ceil((share if given is None else given) * length - 1e-9)
    return max(points, least) if given is None else points


def scaled(case: Case, power: int) -> Case | None:
    """The case with all series times a power of two; None where that leaves the range."""
    samples = {name: one for name, one in case.data.items() if isinstance(one, Sample)}
    finite = [x[np.isfinite(x)] for one in samples.values() for x in one.series]
    sizes = [np.abs(x[x != 0]) for x in finite]
    least = min((float(size.min()) for size in sizes if size.size), default=1.0)
    largest = max((float(size.max()) for size in sizes if size.size), default=1.0)
    for side in (0, power):
        # differences of points have squares that float64 holds, also before scaling
        if np.log2(largest) + side > 440 or np.log2(least) + side < -430:
            return None
    return case.but(
        **{
            name: one.of([np.ldexp(x, power) for x in one.series], plain=True)
            for name, one in samples.items()
        }
    )


def plain(case: Case) -> Case:
    """The case with its data in the plainest form."""
    return case.but(
        **{
            name: one.of(one.series, plain=True)
            for name, one in case.data.items()
            if isinstance(one, Sample)
        }
    )


def check_output(model: Any, X: Any, y: Any, Q: Any, wanted: Any, labels: Any) -> None:
    """`set_output` wraps what `transform` returns, and changes nothing else."""
    if not HAS_PANDAS:
        return
    model.set_output(transform="pandas")
    frame = model.transform(Q)
    check(list(frame.columns) == list(model.get_feature_names_out()), "set_output: columns")
    check_rows(frame, Q)
    same("set_output", frame.to_numpy(), wanted)
    same("predict after set_output", model.predict(Q), labels)
    if X is not None:
        same("fit_transform", model.fit_transform(X, y).to_numpy(), model.transform(X).to_numpy())
    model.set_output(transform="default")


def check_rows(frame: Any, Q: Any) -> None:
    """Rows of a frame are called as the series are, where these have names."""
    names = list(range(len(frame)))
    if hasattr(Q, "columns"):
        names = list(Q.index.get_level_values(0).unique())
    check(list(frame.index) == names, "set_output: rows")


def relate_a_query_alone(self: Any, case: Case, found: dict, call: Callable) -> None:
    """A query alone has the label and the distances that it has in a batch."""
    Q = case.data["Q"]
    # an array of fewer columns is refused
    narrower = Q.form not in (*LISTS, "array3d") and Q.lengths[-1] < Q.lengths.max()
    if "predict" not in found or narrower:
        return
    again = call(case.but(Q=Q.take([len(Q) - 1])))
    for name in ("predict", "transform"):
        same(f"a query alone: {name}", again[name], found[name][-1:])
