"""Writing pages as TOML."""

from __future__ import annotations

import json
import textwrap
from typing import Any

import msgspec

from bentpipe.workload.page.model import Page

_WIDTH = 120


def text(page: Page) -> str:
    """The file of a page, which `catalogue.load` reads."""
    head = f"title = {_value(page.title)}\nsource = {_value(page.source)}\n"
    if page.notes:
        # No line ends within a word: reading it again would split it.
        lines = textwrap.wrap(page.notes, _WIDTH, break_long_words=False, break_on_hyphens=False)
        head += 'notes = """\n' + "\n".join(_value(line)[1:-1] for line in lines) + '"""\n'
    tables = (msgspec.to_builtins(one) for one in page.resource)
    return head + "".join(
        "\n[[resource]]\n" + "".join(f"{key} = {_value(value)}\n" for key, value in table.items())
        for table in tables
    )


def _value(value: Any) -> str:
    """As JSON writes it, which for these values is as TOML does, but for the character DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
