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
        notes = json.dumps(textwrap.fill(page.notes, _WIDTH), ensure_ascii=False)[1:-1].replace("\\n", "\n")
        head += f'notes = """\n{notes}"""\n'
    tables = (msgspec.to_builtins(one) for one in page.resource)
    return head + "".join(
        "\n[[resource]]\n" + "".join(f"{key} = {_value(value)}\n" for key, value in table.items())
        for table in tables
    )


def _value(value: Any) -> str:
    """As JSON writes it, which for these values is as TOML does."""
    return json.dumps(value, ensure_ascii=False)
