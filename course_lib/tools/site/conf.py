"""Sphinx's configuration: ``python -m course_lib.tools.site`` writes the sources and starts it."""

import re

from sphinx.application import Sphinx

import course_lib

project = "Attention, from kernel regression to a trained Transformer"
author = "the authors of the attention course"
copyright = f"2026 {author}"
version = release = course_lib.__version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.githubpages",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx-mathjax-offline",
]
exclude_patterns = ["extra"]
nb_execution_mode = "off"
myst_enable_extensions = ["dollarmath", "html_image"]
myst_dmath_double_inline = True
myst_heading_anchors = 4
suppress_warnings = ["mystnb.unknown_mime_type", "myst.header", "config.cache"]
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
add_module_names = False
napoleon_use_ivar = True

html_theme = "sphinx_book_theme"
html_title = "Attention"
html_favicon = "../../lab/static/favicons/favicon.svg"
html_static_path = ["static"] + [
    f"../../widgets/browser/{name}"
    for name in ("values.js", "pointer.js", "layout.js", "picture.css")
]
html_css_files = ["picture.css", "site.css"]
html_js_files = [
    (f"{name}.js", {"defer": "defer"}) for name in ("values", "pointer", "layout", "player")
]
copybutton_selector = "div.highlight pre:not(.cell_output pre)"  # outputs are not for copying
html_context = {"default_mode": "auto"}
html_theme_options = {
    "show_toc_level": 2,
    "show_navbar_depth": 1,
    "home_page_in_toc": True,
    "use_download_button": True,
}


def _as_rst(app: Sphinx, what: str, name: str, obj: object, options, lines: list[str]) -> None:
    """Turn formulas and tables of a docstring into reStructuredText; a table stays as it is written."""
    text = "\n".join(lines)
    text = re.sub(r"^( *)\$\$(.+?)\$\$", _block, text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"((?:^ *\|.*\|\n)+)", lambda rows: "::\n\n" + _indent(rows[1]), text, flags=re.M)
    lines[:] = re.sub(r"\$([^$]+)\$", r":math:`\1`", text).split("\n")


def _block(found: re.Match) -> str:
    return f"{found[1]}.. math:: " + found[2].replace("\n", f"\n{found[1]}   ")


def _indent(text: str) -> str:
    return re.sub("^", "    ", text, flags=re.M) + "\n"


def _skip(app: Sphinx, what: str, name: str, obj: object, skip: bool, options) -> bool | None:
    """Leave out the fields of a named tuple, which its docstring lists."""
    return True if str(obj.__doc__).startswith("Alias for field number") else None


def setup(app: Sphinx) -> None:
    """Add what needs more than a value."""
    app.config.html_extra_path = [str(app.srcdir / "extra")]
    app.connect("autodoc-process-docstring", _as_rst, priority=400)  # before napoleon
    app.connect("autodoc-skip-member", _skip)
