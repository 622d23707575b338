"""Configuration of Sphinx; build with ``make docs``."""

import sys
from pathlib import Path

import skts

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "skts"
author = "The skts developers"
copyright = "The skts developers"
version = release = skts.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.extlinks",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "benchmark_records",
    "check_links",
    "engine_tables",
    "layers",
    "mathml",
]
exclude_patterns = ["_build", "auto_examples/*.ipynb"]
default_role = "py:obj"
html_math_renderer = "mathml"
extlinks = {"doi": ("https://doi.org/%s", "doi:%s")}
templates_path = ["_templates"]
suppress_warnings = ["config.cache"]  # the gallery's options hold a function

# API reference
autosummary_generate = True
autodoc_typehints = "none"  # the types are in the docstrings
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False  # the class template lists them
numpydoc_class_members_toctree = False

# CHANGELOG.md and CONTRIBUTING.md are pages, too
myst_enable_extensions = ["tasklist"]

# Benchmarks page: see _ext/benchmark_records.py
benchmark_records = Path(__file__).parents[1] / "benchmarks" / "results"

# Gallery
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
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
    "secondary_sidebar_items": {"**": ["page-toc"], "user_guide/coming_from": [], "index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
}
# pages without neighbours need no list of them
html_sidebars = {
    page: []
    for page in (
        "index",
        "install",
        "getting_started",
        "auto_examples/index",
        "user_guide/coming_from",
        "benchmarks",
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


def setup(app):
    """Connect the handler above."""
    app.connect("autodoc-skip-member", skip_member)
