"""The directive ``layers``: who imports whom inside of skts, drawn.

`IMPORTS` is written by hand, and `tests/test_imports.py` compares it with the sources: the picture
in the documentation is therefore true, and a new import between packages has to be drawn.
"""

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

#: Rows from the top down, each box with its share of the width. Imports point downwards. Nobody
#: imports the two engines: the registry finds them by their names.
ROWS = (
    {"warm_up": 1},
    {"plotting": 4, "datasets": 1.2, "_warm_up": 1.2},
    {"ensemble": 1},
    {
        "neighbors": 1,
        "cluster": 1,
        "tree": 1,
        "feature_extraction": 1.4,
        "motifs": 1.4,
        "metrics": 1,
        "averages": 1,
    },
    {"base": 4, "_distance_rows": 2, "_alignment": 2, "utils": 1.2},
    {"_validation": 1, "_metrics": 1},
    {"engines": 1, "engines.numba": 1.5, "engines.cupy": 1.5},
    {"families.search": 1},
    {"families.elastic": 1, "families.profile": 1, "families.shapelets": 1, "families.kshape": 1},
    {"engines.host": 1},
    {"engines.core": 1},
    {
        "_config": 2,
        "exceptions": 2,
        "_log": 1,
        "_parameters": 1,
        "_scalars": 1,
        "_summary": 1,
        "_version": 1,
    },
    {"_engine_names": 1},
)
WORDS = {
    "plotting": "displays",
    "warm_up": "command line",
    "_warm_up": "compiles ahead",
    "neighbors": "estimators",
    "cluster": "estimator",
    "tree": "estimator",
    "ensemble": "estimator",
    "feature_extraction": "estimator",
    "motifs": "estimator, functions",
    "metrics": "functions",
    "averages": "functions",
    "base": "state and tags of estimators",
    "_validation": "series, labels, weights",
    "_metrics": "names of distances",
    "_distance_rows": "all pairs, by rows",
    "_alignment": "averages under warping",
    "utils": "versions",
    "datasets": "data",
    "engines": "what estimators see",
    "families.search": "of queries in long series",
    "families.elastic": "warping, rotation",
    "families.profile": "joins of windows",
    "families.shapelets": "splits of classes",
    "families.kshape": "shape-based distances",
    "engines.host": "compiled code that all engines share",
    "engines.core": "reductions, registry, plans, executor",
    "engines.numba": "kernels for the CPU",
    "engines.cupy": "kernels for the GPU",
    "_config": "settings",
    "_engine_names": "names of engines",
    "exceptions": "",
    "_log": "messages",
    "_parameters": "",
    "_scalars": "",
    "_summary": "",
    "_version": "",
}
#: What is computed and how parts merge, by family (skts/engines/families).
FAMILIES = {
    "families.elastic",
    "families.kshape",
    "families.profile",
    "families.search",
    "families.shapelets",
}
IMPORTS = {
    "warm_up": {"_warm_up"},
    "_warm_up": {
        "ensemble",
        "neighbors",
        "cluster",
        "tree",
        "feature_extraction",
        "motifs",
        "engines",
        "_log",
    },
    "plotting": {
        "_validation",
        "neighbors",
        "cluster",
        "tree",
        "motifs",
        "metrics",
        "_metrics",
        "engines",
    },
    "neighbors": {
        "_log",
        "_metrics",
        "_parameters",
        "_validation",
        "base",
        "engines",
        "_scalars",
        "_summary",
    },
    "cluster": {
        "_alignment",
        "_distance_rows",
        "_log",
        "_metrics",
        "_parameters",
        "_scalars",
        "_validation",
        "base",
        "engines",
    },
    "_distance_rows": {"_metrics", "_validation", "engines"},
    "_alignment": {"_metrics", "engines"},
    "tree": {"_parameters", "_validation", "base", "engines", "exceptions", "_scalars", "_summary"},
    "ensemble": {"_parameters", "_validation", "base", "engines", "tree"},
    "feature_extraction": {"_parameters", "_validation", "base", "engines", "_summary"},
    "motifs": {
        "_log",
        "_parameters",
        "_scalars",
        "_summary",
        "_validation",
        "base",
        "engines",
    },
    "metrics": {
        "_distance_rows",
        "_log",
        "_metrics",
        "_parameters",
        "_validation",
        "engines",
        "_scalars",
    },
    "averages": {
        "_alignment",
        "_log",
        "_metrics",
        "_parameters",
        "_scalars",
        "_validation",
        "engines",
    },
    "base": {
        "_log",
        "_parameters",
        "_scalars",
        "_validation",
        "_version",
        "engines",
        "exceptions",
    },
    "_validation": {"_log", "_parameters", "engines"},
    "_metrics": {"engines"},
    "utils": {"engines", "_version"},
    "datasets": {"_log", "_parameters", "_scalars"},
    "engines": {"engines.core", *FAMILIES},
    "engines.numba": {"engines.core", "engines.host", *FAMILIES},
    "engines.cupy": {"engines.core", "_config", "exceptions", *FAMILIES},
    # a query is compared with windows by the warping of `elastic`
    "families.search": {"engines.core", "engines.host", "families.elastic"},
    "families.elastic": {"engines.core", "engines.host"},
    "families.profile": {"engines.core", "engines.host"},
    "families.shapelets": {"engines.core", "engines.host"},
    "families.kshape": {"engines.core", "engines.host"},
    "engines.host": {"engines.core"},
    "engines.core": {"_config", "_engine_names", "_log", "exceptions"},
    "_config": {"_engine_names"},
    "_engine_names": set(),
    "exceptions": set(),
    "_log": set(),
    "_parameters": set(),
    "_scalars": set(),
    "_summary": set(),
    "_version": set(),
}

WIDTH, HEIGHT, GAP = 760, 44, 42


def places():
    """Left, top and width of every box."""
    found = {}
    for row, boxes in enumerate(ROWS):
        left, room = 0, WIDTH - 12 * (len(boxes) - 1)
        for name, share in boxes.items():
            width = room * share / sum(boxes.values())
            found[name] = (left, row * (HEIGHT + GAP), width)
            left += width + 12
    return found


def arrows(boxes):
    """One line for each import; what goes past a row bends around nothing: it is drawn behind."""
    for name, imported in IMPORTS.items():
        for other in sorted(imported):
            (x, y, w), (u, v, t) = boxes[name], boxes[other]
            both = name in IMPORTS[other]
            start = max(x + 8, min(x + w - 8, u + t / 2)) if w > t else x + w / 2
            end = max(u + 8, min(u + t - 8, x + w / 2)) if t > w else u + t / 2
            if v == y:
                right = u > x
                yield (
                    x + (w if right else 0),
                    y + HEIGHT / 2,
                    u + (0 if right else t),
                    v + (HEIGHT / 2),
                    both,
                )
            else:
                yield start, y + HEIGHT, end, v, both


def as_svg():
    """The picture; colours follow the theme, light or dark."""
    boxes = places()
    height = len(ROWS) * (HEIGHT + GAP) - GAP
    lines = [
        f'<svg class="layers" viewBox="-4 -4 {WIDTH + 8} {height + 8}" width="{WIDTH}" role="img" '
        'xmlns="http://www.w3.org/2000/svg" aria-label="Packages of skts and their imports">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" '
        'fill="var(--pst-color-text-muted)"/></marker></defs>',
    ]
    for x1, y1, x2, y2, both in arrows(boxes):
        lines.append(
            f'<line x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}" '
            'stroke="var(--pst-color-text-muted)" stroke-width="1" marker-end="url(#tip)"'
            + (' marker-start="url(#tip)"' if both else "")
            + "/>"
        )
    for name, (x, y, width) in boxes.items():
        middle = x + width / 2
        lines.append(
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{HEIGHT}" rx="6" '
            'fill="var(--pst-color-surface)" stroke="var(--pst-color-primary)"/>'
        )
        for text, shift, size in ((name, 0 if not WORDS[name] else -7, 14), (WORDS[name], 12, 11)):
            lines.append(
                f'<text x="{middle:.0f}" y="{y + HEIGHT / 2 + 5 + shift:.0f}" font-size="{size}" '
                f'text-anchor="middle" fill="var(--pst-color-text-base)">{text}</text>'
            )
    return "\n".join([*lines, "</svg>"])


class Layers(SphinxDirective):
    """The picture, as text for builders other than HTML."""

    def run(self):
        self.env.note_dependency(__file__)
        text = "\n".join(f"{name}: {', '.join(sorted(to))}" for name, to in IMPORTS.items())
        return [
            nodes.raw("", as_svg(), format="html"),
            nodes.comment("", text),
        ]


def setup(app):
    app.add_directive("layers", Layers)
    return {"version": "1", "parallel_read_safe": True}
