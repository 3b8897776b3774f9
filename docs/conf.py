"""Configuration of the site: ``python -m sphinx -W docs site`` builds it from this folder.

Pages are Markdown; code cells in them are run as the site is built (`myst_nb`), and so are the lessons in
``examples/`` (`sphinx_gallery`). Nothing is fetched from the network, neither here nor by a reader's browser.
"""

import os
import sys
from pathlib import Path

import matplotlib
from sklearn.experimental import enable_iterative_imputer  # noqa: F401  A lesson that is not run imports it.

import sklearn_lrvb

os.environ["SKLEARN_LRVB_PROGRESS"] = "0"  # Nobody waits at the cells of the pages.
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from method_tables import all_tables  # noqa: E402

project = "sklearn-lrvb"
author = "The sklearn-lrvb developers"
project_copyright = author
version = release = sklearn_lrvb.__version__

extensions = [
    "class_docstrings",
    "equation_numbers",
    "gallery_index",
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinx-mathjax-offline",
]
templates_path = ["_templates"]
exclude_patterns = [
    "gallery/*.ipynb",
    "**/sg_execution_times.rst",
    "sg_execution_times.rst",
    "jupyter_execute",
]
suppress_warnings = ["mystnb.unknown_mime_type"]

# Pages in Markdown.
myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
myst_dmath_double_inline = True
nb_execution_mode = "auto"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_output_stderr = "remove-warn"  # What a cell prints to stderr, such as a warning, fails a build with -W.

# Reference from docstrings.
autosummary_generate = True
autosummary_context = {"reference": all_tables()}
autodoc_typehints = "none"  # The docstrings say the types.
autoclass_content = "class"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
toc_object_entries_show_parents = "hide"  # Names of methods would not fit beside the page otherwise.
default_role = None

# Lessons.
matplotlib.use("agg")
sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"\.py$",
    "within_subsection_order": "lesson_number.LessonNumber",
    "abort_on_example_error": True,
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("sklearn_lrvb",),
    "reference_url": {"sklearn_lrvb": None},
    "download_all_examples": False,
    "image_srcset": ["2x"],
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 30,
}

# Look.
html_theme = "pydata_sphinx_theme"
html_title = "sklearn-lrvb"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "sklearn-lrvb"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_prev_next": True,
    "show_toc_level": 2,
    "navigation_depth": 1,  # The sidebar lists classes; a class lists its methods.
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": [], "getting_started": [], "changelog": [], "contributing": []}
html_context = {"default_mode": "light"}


def setup(app):
    """Let pages be read in parallel: the extension below copies files at the end, and does not say so."""
    app.extensions["sphinx-mathjax-offline"].parallel_read_safe = True


# Cells are run by kernels in processes of their own, which take their settings from the environment.
os.environ["MATPLOTLIBRC"] = str(HERE / "matplotlibrc")
os.environ["PYTHONWARNINGS"] = "error::UserWarning,error::RuntimeWarning,error::FutureWarning"
