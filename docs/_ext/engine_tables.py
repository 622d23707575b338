"""Tables that are read off the code: ``estimator-table``, ``reduction-table``, ``kernel-table``.

What the documentation says about engines so follows the engines, with nothing to forget.
"""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

import skts.engines
from skts.engines import Reduction, families, find_engine

#: The heavy work behind each estimator.
WORK = {
    "DTWNearestNeighbor": ("DTWNeighbors",),
    "DTWNearestNeighbor(rotation_invariant=True)": ("RotationNeighbors",),
    "DTWNearestNeighborRegressor": ("DTWNeighbors",),
    "DTWNeighbors": ("DTWNeighbors", "DTWRadiusNeighbors"),
    "DTWNeighbors(rotation_invariant=True)": ("RotationNeighbors", "RotationRadiusNeighbors"),
    "neighbors.dtw_window_search": ("DTWWindowSearch",),
    "neighbors.elastic_parameter_search": ("DTWNeighbors", "DTWPairs", "DTWWindowSearch"),
    "DTWCondenser": ("DTWNeighbors", "DTWPairs", "DTWWindowSearch"),
    "KShapeClusterer": ("SBDAssign", "SBDCenters"),
    "DTWKMedoids": ("DTWMatrix", "DTWNeighbors"),
    "DTWKMeans": ("DTWNeighbors", "AlignmentSums"),
    "metrics.silhouette_samples": ("DTWMatrix", "SBDMatrix"),
    "averages.dtw_barycenter": ("AlignmentSums", "SubgradientSteps"),
    "averages.soft_dtw_barycenter": ("SoftDTWGradient",),
    "DiscordDetector": ("Join", "ChannelJoin", "SpacedNeighbors", "WindowDistances"),
    "motifs.matrix_profile": ("Join", "ChannelJoin"),
    "MotifFinder": ("Join", "WindowDistances", "PairWalk"),
    "ShapeletForestClassifier": ("GroupSplits", "GroupMatches"),
    "ShapeletTransformer": ("ShapeletFeatures", "DistanceQuantiles", "BestShapelets"),
    "ShapeletTreeClassifier": ("ShapeletSearch", "SubsequenceMatches"),
    "ShapeletTreeRegressor": ("ShapeletSearch", "SubsequenceMatches"),
    "SubsequenceMonitor": ("SubsequenceNeighbors",),
    "SubsequenceSearch": ("SubsequenceNeighbors",),
}


def reductions():
    """All kinds of work, by name, in the order of their modules."""
    for module in pkgutil.walk_packages(families.__path__, f"{families.__name__}."):
        importlib.import_module(module.name)
    waiting, found = [Reduction], {}
    while waiting:
        cls = waiting.pop()
        waiting += cls.__subclasses__()
        if hasattr(cls, "method") and not inspect.isabstract(cls):
            found[cls.__name__] = cls
    return dict(sorted(found.items(), key=lambda item: (item[1].__module__, item[0])))


def engines_of(cls):
    """Names of the shipped engines that have the method of a reduction."""
    return [name for name in ("numba", "cupy") if hasattr(find_engine(name), cls.method)]


def table(header, rows, widths):
    lines = [".. list-table::", "   :header-rows: 1", f"   :widths: {widths}", ""]
    for row in [header, *rows]:
        lines += [f"   {'* -' if i == 0 else '  -'} {cell}" for i, cell in enumerate(row)]
    return "\n".join(lines)


class EstimatorTable(SphinxDirective):
    """Estimators, and where their work runs."""

    def run(self):
        known, rows = reductions(), []
        for estimator, work in WORK.items():
            missing = [name for name in work if name not in known]
            if missing:
                raise ExtensionError(f"there is no reduction {', '.join(missing)} (WORK)")
            every = [set(engines_of(known[name])) for name in work]
            name, _, options = estimator.partition("(")
            text = f":py:obj:`~skts.{name}`" + (f", ``{options[:-1]}``" if options else "")
            rows.append([text, *("yes" if all(e in s for s in every) else "" for e in ENGINES)])
        header = ["", *(f"{WHERE[engine]} (``{engine}``)" for engine in ENGINES)]
        return self.parse_text_to_nodes(table(header, rows, "50 25 25"))


ENGINES = ("numba", "cupy")
WHERE = {"numba": "CPU", "cupy": "GPU"}


class ReductionTable(SphinxDirective):
    """Reductions, the method that computes a tile, and the engines that have it."""

    def run(self):
        rows = []
        for name, cls in reductions().items():
            summary = re.split(r"\.(?:\s|$)", cls.__doc__, maxsplit=1)[0].replace("\n", " ")
            engines = ", ".join(engines_of(cls))
            rows.append([f"``{name}``", summary, f"``{cls.method}``", engines])
        header = ["reduction", "computes", "method of an engine", "engines"]
        return self.parse_text_to_nodes(table(header, rows, "20 45 20 15"))


class KernelTable(SphinxDirective):
    """CUDA sources, and the sentence that each opens with."""

    def run(self):
        folder = Path(skts.engines.__file__).parent / "cupy"
        rows = []
        for path in sorted(folder.rglob("*.cu*")):
            self.env.note_dependency(str(path))
            comment = re.match(r"(?:// ?.*\n)+", path.read_text(encoding="utf-8"))
            if comment is None:
                raise ExtensionError(f"{path} does not say what it is for")
            words = re.sub(r"^// ?", "", comment[0], flags=re.MULTILINE)
            first = re.split(r"\n\s*\n", words.strip())[0]
            sentence = re.split(r"(?<=[.:])\s", " ".join(first.split()))[0].rstrip(":.")
            rows.append(
                [
                    f"``{path.relative_to(folder).as_posix()}``",
                    re.sub(r"([|*`_\\])", r"\\\1", sentence),
                ]
            )
        return self.parse_text_to_nodes(table(["file", "holds"], rows, "25 75"))


def setup(app):
    app.add_directive("estimator-table", EstimatorTable)
    app.add_directive("reduction-table", ReductionTable)
    app.add_directive("kernel-table", KernelTable)
    return {"version": "1", "parallel_read_safe": True}
