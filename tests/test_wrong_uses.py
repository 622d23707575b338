"""Wrong uses of everything public: each is refused before any work, in one clear sentence."""

from __future__ import annotations

import re
from inspect import isfunction, signature
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import skts
from skts.engines import find_engine
from skts.metrics import dtw, pairwise_dtw
from tests.discovery import estimators, functions
from tests.examples_of_estimators import examples
from tests.examples_of_functions import FUNCTIONS, needed

#: Modules whose public names are used without them.
MODULES = (
    skts,
    skts.averages,
    skts.cluster,
    skts.feature_extraction,
    skts.metrics,
    skts.motifs,
    skts.neighbors,
    skts.tree,
    skts.datasets,
    skts.plotting,
)
X = np.random.default_rng(0).normal(size=(6, 20))
Y = [0, 1] * 3

LIST = (Path(__file__).parent / "wrong_uses.txt").read_text(encoding="utf-8")
#: Code, and the message; "..." stands for what differs from run to run.
WRONG = dict(re.findall(r"^(\S.*)\n {4}(.*)$", LIST, flags=re.M))
#: What may be meant so, but seldom is, and the warning.
DOUBTFUL = {
    "DTWNearestNeighbor().fit(X[:, :1], y)": "X has shape (6, 1), ... write X.T.",
    "DTWNearestNeighbor().fit(pd.DataFrame(X[:, :1]), y)": "X has shape (6, 1), ... write X.T.",
    "DTWNearestNeighbor().fit(X[:, :1].tolist(), y)": "X has ... write np.transpose(X).",
    "DTWNearestNeighbor().fit(list(X[:, :, None]), y)": (
        "X has 20 channels of one time point each: ... write [x.T for x in X]."
    ),
    "DTWNearestNeighbor().fit(X[:, :, None].repeat(2, axis=2), y)": (
        "X has 20 channels of 2 time points each: ... write X.transpose(0, 2, 1)."
    ),
}


@pytest.fixture(scope="module")
def names():
    """What the code may name: all that is public, series, and fitted models."""
    gap = X.copy()
    gap[2, 5] = np.nan
    public = {name: getattr(module, name) for module in MODULES for name in module.__all__}
    return public | {
        "np": np,
        "pd": pd,
        "skts": skts,
        "csr_array": csr_array,
        "X": X,
        "x": X[0],
        "y": Y,
        "column": X[0][:, None],
        "gap": gap,
        "neighbor": skts.DTWNearestNeighbor().fit(X, Y),
        "monitor": skts.SubsequenceMonitor(engine="oracle").fit(X[:2, :5]),
        "search": skts.SubsequenceSearch().fit(X),
        "finder": skts.MotifFinder(5, engine="oracle").fit(X[:2]),
        "kmeans": skts.DTWKMeans(2, random_state=0, engine="oracle").fit(X),
        "detector": skts.DiscordDetector(5, engine="oracle").fit(X[:2]),
    }


@pytest.fixture
def no_work(names, monkeypatch):
    """Engines that must not be asked for anything."""
    for engine in ("numba", "oracle"):
        monkeypatch.setattr(
            type(find_engine(engine)), "compute", lambda *arguments: pytest.fail("work was done")
        )


def says(text, message):
    """Whether a text is a message with words left out."""
    text = text.replace("numpy.bool_'", "numpy.bool'")  # its name in NumPy 1
    return re.fullmatch(".*".join(map(re.escape, message.split("..."))), text)


@pytest.mark.parametrize("code", WRONG)
@pytest.mark.usefixtures("no_work")
def test_wrong_uses_are_refused_in_a_sentence(names, code):
    with pytest.raises((ValueError, TypeError, OSError, AttributeError)) as caught:
        eval(code, names)
    text = str(caught.value)
    assert says(text, WRONG[code]), text
    assert "\n" not in text and len(text) < 320


TAKE_JOBS = [one for one in (*estimators(), *functions()) if "n_jobs" in signature(one).parameters]


@pytest.mark.parametrize("kind", TAKE_JOBS, ids=lambda kind: kind.__name__)
@pytest.mark.usefixtures("no_work")
def test_no_threads_at_all_are_refused_before_any_work(kind):
    message = f"^The 'n_jobs' parameter of {kind.__name__} must be .* Got 0 instead.$"
    with pytest.raises(ValueError, match=message):
        if isinstance(kind, type):
            example = examples()[kind]
            example.make().set_params(n_jobs=0).fit(*example.first)
        else:
            kind(*FUNCTIONS[kind][0], **needed(kind), n_jobs=0)


@pytest.mark.parametrize("maker", ["make_random_walk", "make_cylinder_bell_funnel"])
def test_truth_values_are_no_numbers_by_name_or_by_place(maker):
    make = getattr(skts.datasets, maker)
    for call in (lambda: make(True, 10), lambda: make(10, True), lambda: make(n_samples=True)):
        with pytest.raises(ValueError, match=rf"parameter of {maker} must be a number. Got True"):
            call()


@pytest.mark.parametrize("code", DOUBTFUL)
@pytest.mark.usefixtures("no_work")
def test_what_is_seldom_meant_so_warns_where_it_is_written(names, code):
    with pytest.warns(UserWarning) as caught:
        eval(compile(code, "here.py", "eval"), names)
    (warning,) = caught
    assert says(str(warning.message), DOUBTFUL[code]), str(warning.message)
    assert warning.filename == "here.py"


def test_two_columns_of_one_length_are_compared_with_a_warning():
    column = X[0][:, None]
    with pytest.warns(UserWarning, match=r"write x\.T and y\.T\.") as caught:
        assert dtw(column, column, engine="oracle") == 0
    assert caught[0].filename == __file__


@pytest.mark.filterwarnings("error")
def test_what_is_meant_so_passes():
    """As many channels as sensors have; one time point where others have the same channels."""
    many = np.ones((3, 30, 4))
    model = skts.DTWNearestNeighbor(engine="oracle").fit(many, [0, 1, 0])
    assert model.predict(many[:, :, :1]).shape == (3,)
    found = pairwise_dtw(many[:, :, :1], many, engine="oracle")
    assert found.shape == (3, 3)
    assert skts.DTWNearestNeighbor().fit(np.ones((1, 1)), [0]).n_features_in_ == 1
    assert skts.DTWNearestNeighbor().fit(list(np.ones((2, 1))), [0, 1]).n_channels_ == 1


@pytest.mark.filterwarnings("ignore:X has 2 channels of one time point each")
def test_a_list_of_single_points_is_asked_about_once():
    """Estimators that look at their series again take them as they are."""
    points = list(np.random.default_rng(1).normal(size=(6, 2, 1)))
    condenser = skts.DTWCondenser(n_prototypes=3, engine="oracle").fit(points, Y)
    assert condenser.sample_indices_.size == 3
    model = skts.KShapeClusterer(2, random_state=0, engine="oracle").fit(points)
    assert model.predict(points).tolist() == model.labels_.tolist()


def test_the_list_names_everything_public():
    assert len(WRONG) >= 115
    words = set(re.findall(r"\w+", " ".join(WRONG)))
    wanted = {one.__name__ for one in (*estimators(), *functions())}
    of_data = {name for name in skts.datasets.__all__ if isfunction(getattr(skts.datasets, name))}
    wanted |= {"export_text", *of_data}
    assert wanted <= words


def test_the_settings_are_as_they_were():
    """A wrong setting changes none, also where others in the call are right."""
    before = skts.get_config()
    with pytest.raises(ValueError):
        skts.set_config(engine="numba", memory="lots")
    assert skts.get_config() == before
