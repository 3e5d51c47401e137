"""Settings of the documentation; `make docs` builds it."""

from __future__ import annotations

import re
import sys
import tomllib
import warnings
from inspect import isbuiltin
from pathlib import Path
from typing import Any

from sklearn.exceptions import ConvergenceWarning

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

project = "bowtienet"
author = "The bowtienet developers"
copyright = f"2026, {author}"
release = version = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"][
    "version"
]

extensions = [
    "mathml",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "**/GALLERY_HEADER.rst"]
templates_path = ["_templates"]
nitpicky = True

myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 4

html_theme = "pydata_sphinx_theme"
html_title = "bowtienet"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "footer_end": [],
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "navbar_align": "left",
    "secondary_sidebar_items": ["page-toc"],
    "show_toc_level": 2,
}
html_sidebars = {"getting_started": [], "troubleshooting": [], "comparison": []}

# Types in signatures repeat what numpydoc's sections say, and link to sites of other projects.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    # The others draw docs/figures at length, and the guide shows them.
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"(?:^|/)(?!plot_)\w+\.py$",
    "within_subsection_order": "FileNameSortKey",
    "image_srcset": ["2x"],
    "abort_on_example_error": False,
    "capture_repr": ("_repr_html_",),
    "write_computation_times": False,
    "download_all_examples": False,
    "show_signature": False,
    "doc_module": ("bowtienet",),
    "backreferences_dir": "api/generated/backreferences",
    "inspect_global_variables": False,
}
# A fit that asks for more sweeps, or any other warning, is not for an example to show.
warnings.filterwarnings("error", module="bowtienet")
warnings.filterwarnings("error", category=ConvergenceWarning)

_GENERATED = re.compile(r"set_\w+_request$")


def skip_foreign(
    app: Any, what: str, name: str, member: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out what a class has from scikit-learn or Python, which document it themselves."""
    if isbuiltin(member) or _GENERATED.match(name):
        return True
    member = getattr(member, "fget", member)
    module = getattr(member, "__module__", None)
    if module is None:
        module = getattr(getattr(member, "__objclass__", None), "__module__", "")
    return True if module.split(".")[0] in {"sklearn", "builtins", "enum"} else None


def setup(app: Any) -> None:
    """Connect the hooks above."""
    app.connect("autodoc-skip-member", skip_foreign)
