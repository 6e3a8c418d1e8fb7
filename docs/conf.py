"""The site: ``make docs``."""

from __future__ import annotations

import scboost

project = "scboost"
author = "The scboost developers"
copyright = "the scboost developers"  # noqa: A001 - Sphinx's name
version = release = scboost.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery/**/*.ipynb"]
html_theme = "pydata_sphinx_theme"
html_title = "scboost"
html_theme_options = {
    "github_url": "https://github.com/scboost/scboost",
    "navigation_with_keys": False,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {page: [] for page in ("index", "start", "method")}  # which have no pages below them
html_context = {"default_mode": "auto"}

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings tell types and shapes
numpydoc_show_class_members = True
numpydoc_class_members_toctree = False
numpydoc_show_inherited_class_members = {
    "scboost.SCBoostClassifier": True,
    "scboost.SCBoostRegressor": True,
}

# The project's own site and repository: their pages appear with the commit that links to them.
linkcheck_ignore = [r"https://scboost\.github\.io/", r"https://github\.com/scboost/"]

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
suppress_warnings = ["ref.ref"]  # labels of scikit-learn's site in docstrings that are inherited from it

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": "/plot_",
    "within_subsection_order": "FileNameSortKey",
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
}
