"""How Sphinx makes the site of the documentation: `build.py` calls it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the environment of the site alone has it
    from sphinx.application import Sphinx

_HERE = Path(__file__).parent
_PACKAGE = _HERE.parents[1] / "python" / "bentpipe" / "__init__.py"
_VERSION = re.search(r'^__version__ = "(.+)"$', _PACKAGE.read_text(), re.MULTILINE)

project = "Bentpipe"
author = "The Bentpipe authors"
version = release = _VERSION[1] if _VERSION else ""
html_title = "Bentpipe"
language = "en"
root_doc = "index"

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
# The pages are written for GitHub: what is an instruction in MyST alone is text there, and here.
myst_disable_syntax = ["myst_role", "myst_line_comment", "blockbreak", "myst_target"]
myst_heading_anchors = 6
myst_heading_anchors_html_ids = True
myst_enable_extensions = ["attrs_block"]
smartquotes = False  # `--` is an option, not a dash
suppress_warnings = [
    "misc.highlighting_failure",  # a block with `…` in it is of no language
    "myst.header",  # a page may begin with a second level
]

html_theme = "furo"
html_show_copyright = False
html_show_sourcelink = False
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["site.css"]
templates_path = ["templates"]
html_domain_indices = False
html_use_index = False
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
_FONTS = {
    "font-stack": "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Liberation Sans', sans-serif",
    "font-stack--monospace": "ui-monospace, 'Cascadia Code', 'SF Mono', Menlo, 'DejaVu Sans Mono', monospace",
}
html_theme_options = {"light_css_variables": _FONTS}


def _open_section_alone(
    _app: Sphinx, _page: str, _template: str, context: dict[str, Any], _doctree: object
) -> None:
    """Show the section of a page in its navigation, and of others the name. All of them would be half the
    work and half the bytes of the site.
    """
    whole = context["toctree"]
    context["toctree"] = lambda **options: whole(**{**options, "collapse": True})


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", _open_section_alone, priority=100)  # before the theme's
