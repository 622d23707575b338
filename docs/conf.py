"""Configuration of Sphinx; build with ``make docs``."""

import sys
import tomllib
from pathlib import Path

import skts

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
sys.path.append(str(HERE.parent))
#: Pages with two programs beside each other: they need the width.
COMING_FROM = [
    f"user_guide/coming_from/{path.stem}"
    for path in sorted((HERE / "user_guide" / "coming_from").glob("*.rst"))
]
URLS = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]["urls"]

project = "skts"
author = "The skts developers"
copyright = "The skts developers"
version = release = skts.__version__.partition("+")[0]

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.extlinks",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "matplotlib.sphinxext.plot_directive",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "benchmark_records",
    "benchmark_targets",
    "check_links",
    "engine_tables",
    "history",
    "layers",
    "mathml",
]
exclude_patterns = ["_build", "auto_examples/**/*.ipynb"]
default_role = "py:obj"
html_math_renderer = "mathml"
extlinks = {"doi": ("https://doi.org/%s", "doi:%s")}
templates_path = ["_templates"]
suppress_warnings = ["config.cache"]  # the gallery's options hold a function

# Names of others, in inventories of few lines: a build needs no network. A new name needs a line
# there; without one it is shown without a link.
intersphinx_mapping = {
    name: (url, f"inventories/{name}.inv")
    for name, url in {
        "python": "https://docs.python.org/3/",
        "numpy": "https://numpy.org/doc/stable/",
        "scipy": "https://docs.scipy.org/doc/scipy/",
        "sklearn": "https://scikit-learn.org/stable/",
        "joblib": "https://joblib.readthedocs.io/en/stable/",
    }.items()
}

# Figures of pages: made by the code that is shown
plot_include_source = True
plot_html_show_source_link = False
plot_html_show_formats = False
plot_formats = [("png", 100)]

# Copied is the code, not what it prints
copybutton_selector = "div:not(.highlight-none) > div.highlight pre"

# API reference
autosummary_generate = True
autodoc_typehints = "none"  # the types are in the docstrings
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False  # the class template lists them
numpydoc_class_members_toctree = False

# CHANGELOG.md and CONTRIBUTING.md are pages, too
myst_enable_extensions = ["tasklist"]

# Benchmarks page: see _ext/benchmark_records.py
benchmark_records = HERE.parent / "benchmarks" / "results"

# Gallery
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "subsection_order": [
        f"../examples/{task}"
        for task in ("classify", "shapelets", "cluster", "motifs", "search", "engines")
    ],
    "nested_sections": False,
    "within_subsection_order": "FileNameSortKey",
    "ignore_pattern": r"demo\.py|__init__\.py",
    "doc_module": ("skts",),
    "reference_url": {"skts": None},
    "backreferences_dir": "api/generated/backreferences",
    "abort_on_example_error": True,
    "show_memory": False,
    "download_all_examples": False,
}

html_theme = "pydata_sphinx_theme"
html_title = f"skts {release}"
html_theme_options = {
    "navbar_align": "left",
    "show_toc_level": 2,
    "header_links_before_dropdown": 8,
    "secondary_sidebar_items": {
        "**": ["page-toc", "edit-this-page"],
        **{page: [] for page in COMING_FROM},
        "index": [],
    },
    "use_edit_page_button": True,
    "icon_links": [{"name": "Source", "url": URLS["Source"], "icon": "fa-brands fa-github"}],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_context = {
    "github_user": URLS["Source"].split("/")[-2],
    "github_repo": URLS["Source"].split("/")[-1],
    "github_version": "main",
    "doc_path": "docs",
}
# pages without neighbours need no list of them
html_sidebars = {
    page: []
    for page in (
        "index",
        "install",
        "getting_started",
        "auto_examples/index",
        *COMING_FROM,
        "benchmarks",
        "targets",
        "changelog",
    )
}
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["skts.css"]


def skip_member(app, what, name, obj, skip, options):
    """Leave to scikit-learn's documentation what is inherited from scikit-learn."""
    home = getattr(obj, "__module__", None) or type(obj).__module__
    return True if home.startswith("sklearn.") else None


def no_edit_button(app, pagename, templatename, context, doctree):
    """Offer no link to the source of pages that have none: they are made when this is built."""
    if pagename.startswith(("auto_examples/", "api/generated/")):
        context["theme_use_edit_page_button"] = False


def setup(app):
    """Connect the handlers above."""
    app.connect("autodoc-skip-member", skip_member)
    app.connect("html-page-context", no_edit_button)
