"""The site: ``make docs``."""

from __future__ import annotations

import os
import sys
import urllib.error
import urllib.request
from pathlib import Path

import scboost

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "scboost"
author = "The scboost developers"
copyright = "the scboost developers"  # noqa: A001 - Sphinx's name
version = release = scboost.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "mathml",
    "myst_nb",
    "notebooks",
    "numpydoc",
    "parameter_groups",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery/*.ipynb", "gallery/backreferences/*"]
templates_path = ["_templates"]

# Appearance
html_theme = "pydata_sphinx_theme"
html_title = "scboost"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_theme_options = {
    "github_url": "https://github.com/scboost/scboost",
    "header_links_before_dropdown": 8,
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "navbar_end": ["version-switcher", "theme-switcher", "navbar-icon-links"],
    "switcher": {
        "json_url": "https://scboost.github.io/scboost/_static/switcher.json",
        "version_match": "latest",
    },
    "check_switcher": False,  # needs the network
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {page: [] for page in ("index", "install", "tutorial", "benchmarks")}  # no pages below them
html_context = {"default_mode": "auto"}
html_math_renderer = "mathml"
copybutton_exclude = ".linenos, .gp, .go"

# API pages
autosummary_generate = True
autodoc_typehints = "none"  # the docstrings tell types and shapes
autodoc_preserve_defaults = True
numpydoc_show_class_members = True
numpydoc_class_members_toctree = False
numpydoc_show_inherited_class_members = {
    "scboost.SCBoostClassifier": True,
    "scboost.SCBoostRegressor": True,
}

# Markdown pages. Pages with `file_format: mystnb` are executed, each in an empty folder of its own.
myst_enable_extensions = ["attrs_block", "colon_fence", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "cache"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True
nb_output_stderr = "remove"  # progress
_kernel = Path(__file__).parent / "_build" / "ipython" / "profile_default" / "ipython_kernel_config.py"
_kernel.parent.mkdir(parents=True, exist_ok=True)
_kernel.write_text('c.IPKernelApp.log_level = 40\nc.InlineBackend.figure_formats = ["retina"]\n', encoding="utf-8")
os.environ["IPYTHONDIR"] = str(_kernel.parents[1])
os.environ.pop("MPLBACKEND", None)  # the kernels show figures in the page
suppress_warnings = ["ref.ref"]  # labels of scikit-learn's site in docstrings that are inherited from it

# Links
linkcheck_ignore = [r"https://scboost\.github\.io/", r"https://github\.com/scboost/"]  # published with the commit
_OTHER_SITES = {
    "numpy": "https://numpy.org/doc/stable/",
    "pandas": "https://pandas.pydata.org/docs/",
    "python": "https://docs.python.org/3/",
    "scipy": "https://docs.scipy.org/doc/scipy/",
    "sklearn": "https://scikit-learn.org/stable/",
    "xgboost": "https://xgboost.readthedocs.io/en/stable/",
}


def _reachable(site: str) -> bool:
    try:
        with urllib.request.urlopen(site + "objects.inv", timeout=3):  # noqa: S310 - addresses of the table above
            return True
    except (OSError, urllib.error.URLError):
        return False


# Names of other libraries are links where their sites can be reached, and plain text otherwise.
intersphinx_mapping = {name: (site, None) for name, site in _OTHER_SITES.items() if _reachable(site)}
intersphinx_timeout = 10

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": "/plot_",
    "within_subsection_order": "FileNameSortKey",
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "backreferences_dir": "gallery/backreferences",  # "Examples using ..." on the pages of the API
    "doc_module": ("scboost",),
}
