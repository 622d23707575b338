"""Make dtw.npz: what independent libraries give for DTW and its relatives.

    python tests/data/peers/make_dtw.py --python python3.13

draws the inputs, runs itself as `make_dtw.py PEER INPUTS OUTPUTS` in the environment of each
peer (`benchmarks/peers/_environments.py` makes them), and stores everything together when the
peers agree with each other. What each key means is in README.md beside this file.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from platform import python_version

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
PEERS = ("aeon", "tslearn", "dtaidistance", "wildboar", "tsdistances", "dtw-python")
WINDOWS = (0, 1, 4, 15)


def draw_inputs():
    rng = np.random.default_rng(20240)

    def walks(*shape):
        return np.cumsum(rng.standard_normal(shape), axis=-1)

    def padded(lengths, *channels):
        """Series of these lengths, with trailing NaN up to the longest."""
        series = np.full((len(lengths), *channels, max(lengths)), np.nan)
        for row, length in zip(series, lengths, strict=True):
            row[..., :length] = walks(*channels, length)
        return series

    def shapes(n):
        """Noisy plateaus, ramps up and ramps down that start and end somewhere."""
        labels = np.arange(n) % 3
        rows = rng.normal(scale=0.4, size=(n, 60))
        for row, label in zip(rows, labels, strict=True):
            start, stop = rng.integers(5, 20), rng.integers(35, 58)
            ramp = np.linspace(0.1, 1, stop - start)
            form = (np.ones_like(ramp), ramp, ramp[::-1])[label]
            row[start:stop] += (3 + rng.normal()) * form
        return rows, labels

    def heartbeats(n):
        """Three bumps and a trend, of other width and place in each row, to two decimals."""
        t = np.linspace(0, 1, 80)
        rows = []
        for _ in range(n):
            row = rng.normal() * 0.3 * t
            for centre, width, height in ((0.25, 0.03, 0.3), (0.45, 0.012, 2), (0.7, 0.05, 0.5)):
                centre, width = centre + rng.normal() * 0.03, width * rng.uniform(0.8, 1.3)
                row = row + height * rng.uniform(0.8, 1.2) * np.exp(-(((t - centre) / width) ** 2))
            rows.append(row)
        return np.round(rows, 2)

    train, labels = shapes(36)
    test, test_labels = shapes(24)
    scales = 10.0 ** np.array([-6, -3, 0, 3, 6])[:, None]
    return {
        "walks_X": walks(9, 40),
        "walks_Y": walks(7, 40),
        "beats_X": heartbeats(7),
        "beats_Y": heartbeats(6),
        "scales_X": walks(5, 25) * scales,
        "scales_Y": np.concatenate([walks(3, 25), np.full((1, 25), 0.1), np.zeros((1, 25))]),
        "ragged_X": padded([1, 2, 3, 17, 40, 64]),
        "ragged_Y": padded([1, 5, 33, 64, 50]),
        "long_X": padded([700, 513]),
        "long_Y": padded([640, 256]),
        "channels_X": walks(6, 3, 30),
        "channels_Y": walks(5, 3, 30),
        "raggedchannels_X": padded([1, 12, 25, 40], 2),
        "raggedchannels_Y": padded([2, 30, 40], 2),
        "queries_X": walks(4, 20),
        "queries_Y": walks(5, 90),
        "shapes_X": train,
        "shapes_y": labels,
        "shapes_Z": test,
        "shapes_z": test_labels,
    }


SETS = ("walks", "beats", "scales", "ragged", "long")
SETS_WITH_CHANNELS = ("channels", "raggedchannels")


def series(rows):
    """The series without the NaN that pads them."""
    return [row[..., ~np.isnan(row).reshape(-1, row.shape[-1]).any(axis=0)] for row in rows]


class Answers:
    """The inputs, and what one peer makes of them."""

    def __init__(self, inputs):
        self.inputs = inputs
        self.found = {}

    def pairs(self, measure, sets, distance):
        """Keep the matrix of `distance(x, y)` over all pairs of each set."""
        for name in sets:
            X, Y = (series(self.inputs[f"{name}_{side}"]) for side in "XY")
            self.found[f"{measure}.{name}"] = [[float(distance(x, y)) for y in Y] for x in X]

    def nearest(self, measure, matrix):
        """Keep the nearest of shapes_X to each row of shapes_Z, and how near it is."""
        self.found[f"{measure}.shapes.index"] = np.argmin(matrix, axis=1)
        self.found[f"{measure}.shapes.distance"] = np.min(matrix, axis=1)


def aeon(a):
    from aeon.distances import dtw_distance, dtw_pairwise_distance

    a.pairs("dtw", SETS + SETS_WITH_CHANNELS, lambda x, y: np.sqrt(dtw_distance(x, y)))

    def band(r):
        # a fraction of the length, rounded down
        return lambda x, y: np.sqrt(dtw_distance(x, y, window=(r + 0.5) / x.shape[-1]))

    for r in WINDOWS:
        a.pairs(f"dtw_window{r}", ("walks", "beats", "channels"), band(r))
    X, Z = a.inputs["shapes_X"], a.inputs["shapes_Z"]
    a.nearest("nearest", np.sqrt(dtw_pairwise_distance(Z, X)))
    a.nearest("nearest_window4", np.sqrt(dtw_pairwise_distance(Z, X, window=4.5 / 60)))


def tslearn(a):
    from tslearn.metrics import dtw, dtw_path, dtw_subsequence_path, frechet

    def points_first(function, **options):
        return lambda x, y: function(x.T, y.T, **options)

    for measure, function in (("dtw", dtw), ("frechet", frechet)):
        a.pairs(measure, SETS + SETS_WITH_CHANNELS, points_first(function))
        for r in WINDOWS:
            band = {"global_constraint": "sakoe_chiba", "sakoe_chiba_radius": r}
            a.pairs(
                f"{measure}_window{r}",
                ("walks", "beats", "channels"),
                points_first(function, **band),
            )
    a.pairs("subsequence", ("queries",), lambda x, y: dtw_subsequence_path(x, y)[1])
    for i, (x, y) in enumerate(zip(*(a.inputs[f"walks_{side}"] for side in "XY"), strict=False)):
        path, distance = dtw_path(x, y)
        a.found[f"path.walks.{i}"], a.found[f"path.walks.{i}.distance"] = path, distance
        if i == 2:
            break
    x, y = series(a.inputs["ragged_X"])[3], series(a.inputs["ragged_Y"])[2]
    a.found["path.ragged.3.2"], a.found["path.ragged.3.2.distance"] = dtw_path(x, y)


def dtaidistance(a):
    from dtaidistance import dtw, dtw_ndim

    def contiguous(x):
        return np.ascontiguousarray(x.T)

    def several(**options):
        return lambda x, y: dtw_ndim.distance(contiguous(x), contiguous(y), use_c=True, **options)

    def single(**options):
        return lambda x, y: dtw.distance(x, y, use_c=True, **options)

    a.pairs("dtw", SETS, single())
    a.pairs("dtw", SETS_WITH_CHANNELS, several())
    a.pairs("absolute", SETS, single(inner_dist="euclidean"))
    for r in WINDOWS:
        # offsets below the window are allowed
        a.pairs(f"dtw_window{r}", ("walks", "beats"), single(window=r + 1))
        a.pairs(f"dtw_window{r}", ("channels",), several(window=r + 1))
        a.pairs(
            f"absolute_window{r}", ("walks", "beats"), single(window=r + 1, inner_dist="euclidean")
        )
    a.pairs(
        "subsequence",
        ("queries",),
        # its alignment search wants matches of two points or more: relax both ends of y instead
        lambda x, y: single(psi=(0, 0, len(y), len(y)))(x, y),
    )
    for i in range(3):
        x, y = a.inputs["walks_X"][i], a.inputs["walks_Y"][i]
        a.found[f"path.walks.{i}"] = dtw.warping_path(x, y)
        a.found[f"path.walks.{i}.distance"] = dtw.distance(x, y, use_c=True)
    X, Z = a.inputs["shapes_X"], a.inputs["shapes_Z"]
    a.nearest("nearest", [[single()(z, x) for x in X] for z in Z])
    a.nearest("nearest_window4", [[single(window=5)(z, x) for x in X] for z in Z])


def wildboar(a):
    from wildboar.distance import argmin_distance, pairwise_distance

    def compute(name, r):
        X, Y = a.inputs[f"{name}_X"], a.inputs[f"{name}_Y"]
        # offsets below the rounded-down fraction of the length are allowed
        fraction = 1.0 if r is None else (r + 1.5) / X.shape[-1]
        return pairwise_distance(X, Y, dim=0, metric="dtw", metric_params={"r": fraction})

    for name in ("walks", "beats", "scales"):
        a.found[f"dtw.{name}"] = compute(name, None)
    for name in ("walks", "beats"):
        for r in WINDOWS:
            a.found[f"dtw_window{r}.{name}"] = compute(name, r)
    X, Z = a.inputs["shapes_X"], a.inputs["shapes_Z"]
    for measure, r in (("nearest", 1.0), ("nearest_window4", 5.5 / 60)):
        index, distance = argmin_distance(
            Z, X, metric="dtw", metric_params={"r": r}, return_distance=True
        )
        a.found[f"{measure}.shapes.index"] = np.ravel(index)
        a.found[f"{measure}.shapes.distance"] = np.ravel(distance)


def tsdistances(a):
    from tsdistances import dtw_distance

    for name in ("walks", "beats", "scales"):
        X, Y = a.inputs[f"{name}_X"], a.inputs[f"{name}_Y"]
        a.found[f"dtw.{name}"] = np.sqrt(dtw_distance(X, Y, par=False))


def dtw_python(a):
    from dtw import dtw

    def distance(metric, **options):
        def measure(x, y):
            x, y = (np.atleast_2d(each).T for each in (x, y))
            alignment = dtw(
                x, y, dist_method=metric, step_pattern="symmetric1", distance_only=True, **options
            )
            return alignment.distance

        return measure

    a.pairs("absolute", SETS + SETS_WITH_CHANNELS, distance("cityblock"))
    for r in WINDOWS:
        options = {"window_type": "sakoechiba", "window_args": {"window_size": r}}
        a.pairs(
            f"absolute_window{r}", ("walks", "beats", "channels"), distance("cityblock", **options)
        )


def answer(peer, inputs_path, outputs_path):
    """In the environment of the peer."""
    from importlib.metadata import version

    with np.load(inputs_path) as file:
        answers = Answers(dict(file))
    globals()[peer.replace("-", "_")](answers)
    answers.found["version"] = f"{version(peer)} (Python {python_version()})"
    np.savez(outputs_path, **answers.found)


def disagreements(found):
    """Pairs of peers whose values of the same thing differ."""
    values = {}
    for key, value in found.items():
        what, peer = key.rsplit(".", 1)
        values.setdefault(what, []).append((peer, np.asarray(value)))
    for what, (first, *others) in values.items():
        for other in others:
            if not np.allclose(first[1], other[1], rtol=1e-9, atol=1e-12):
                yield f"{what}: {first[0]} and {other[0]} differ"


def main():
    sys.path.insert(0, str(ROOT))
    from benchmarks.peers import _environments

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--environments", type=Path, default=_environments.FOLDER)
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()

    inputs, found, versions = draw_inputs(), {}, {}
    with tempfile.TemporaryDirectory() as folder:
        asked = Path(folder) / "inputs.npz"
        np.savez(asked, **inputs)
        for peer in PEERS:
            python = _environments.interpreter(
                peer, folder=options.environments, python=options.python
            )
            answered = Path(folder) / f"{peer}.npz"
            subprocess.run([python, __file__, peer, asked, answered], check=True)
            with np.load(answered) as file:
                answers = dict(file)
            versions[peer] = str(answers.pop("version"))
            print(f"{peer} {versions[peer]}: {len(answers)} results")
            found |= {f"{key}.{peer}": value for key, value in answers.items()}

    differing = list(disagreements(found))
    if differing:
        sys.exit("\n".join(differing))
    target = HERE / "dtw.npz"
    np.savez_compressed(target, versions=json.dumps(versions), **inputs, **found)
    print(f"{target.relative_to(ROOT)}: {target.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] in PEERS:
        answer(*sys.argv[1:])
    else:
        main()
