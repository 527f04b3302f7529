"""A badge, for the page of a project: a small picture that says how many objectives are met."""

from __future__ import annotations

from xml.sax.saxutils import escape

from bentpipe.objectives.tally import FAILED, PASSED, exit_code
from bentpipe.schema.verdicts import Verdicts

_CHARACTER = 6.6  # px, at 11 px
_GREEN, _RED, _GREY = "#2c7a3f", "#b3261e", "#5f6368"  # white on them has a contrast above 5


def svg(found: Verdicts) -> str:
    """The badge as SVG: the suite, and how many of its applicable objectives are met."""
    asked = [one for one in found.verdicts if one.outcome != "skipped"]
    met = f"{sum(one.outcome == 'pass' for one in asked)}/{len(asked)}"
    colour = {PASSED: _GREEN, FAILED: _RED}.get(exit_code(found), _GREY)
    left, right = (round(len(text) * _CHARACTER) + 12 for text in (found.suite, met))
    title = escape(f"{found.suite}: {met} objectives met", {'"': "&quot;"})
    size = f'width="{left + right}" height="20"'
    return f"""<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{title}">
<title>{title}</title>
<rect {size} rx="3" fill="#3c4043"/>
<path d="M{left} 0h{right - 3}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3H{left}z" fill="{colour}"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">
<text x="{left / 2}" y="14">{escape(found.suite)}</text>
<text x="{left + right / 2}" y="14">{met}</text>
</g>
</svg>
"""
