"""The contents of a page's files: markup, styles, scripts and pictures, which lead a browser to the page's
other resources.

They lead a browser to its other resources. Documents name what they lead to as far from their beginning as
the page says; between stand bytes that do not compress well. What cannot lead to anything, as fonts, has no
content of its own (`bentpipe.workload.served`).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from bentpipe.schema.bundle import BundleResource
from bentpipe.workload.page import picture

# No icon, which browsers ask for by themselves; pictures small enough that all of them are seen.
_BEGIN = (
    "<!doctype html><html lang=en><meta charset=utf-8><title>A page</title><link rel=icon href=data:,>"
    "<style>img{width:9em}</style>"
)
# g(KIND, URL, WAIT, THEN): requests it after WAIT milliseconds, and goes on with THEN when it is there.
_ASKER = (
    "<script>g=(k,u,w,n=()=>0)=>{let a=()=>{let e;if(k=='font')return new FontFace('x',`url(${u})`).load()"
    ".then(n,n);if(k=='fetch')return fetch(u).then(r=>r.arrayBuffer()).then(n,n);e=document.createElement(k);"
    "k=='link'?(e.rel='stylesheet',e.href=u):e.src=u;e.onload=e.onerror=n;(document.body||"
    "document.documentElement).append(e)};w?setTimeout(a,w):a()}"
    "</script>"
)
# The elements with which a script requests resources; all others it requests by fetch().
_ELEMENTS = {"stylesheet": "link", "script": "script", "image": "img", "document": "iframe", "font": "font"}
# Those that name what they lead to. Of all others scripts know it that ask for them.
NAMING = ("document", "stylesheet", "script")
# The part of a document behind which there is text: its head ends there.
_HEAD = 10


@dataclass(frozen=True)
class _Reference:
    """A reference to a resource, and after how many bytes it is to be found."""

    text: str
    found_after: int


@dataclass(frozen=True)
class PageContent:
    """The contents of a page's files, called `names`."""

    names: Sequence[str]
    page: Sequence[BundleResource]

    @cached_property
    def files(self) -> dict[str, bytes]:
        """The files whose bytes are not arbitrary: name → content."""
        found = {}
        for number, name in enumerate(self.names):
            body = self._body(number)
            if body is not None and len(body) == self.page[number].bytes:
                found[name] = body
        return found

    @property
    def misfit(self) -> str | None:
        """The reason why no browser can load the page, in words; None if one can."""
        for number, one in enumerate(self.page):
            led = self._led(number)
            if one.type not in NAMING or not led:
                continue
            what = f"resource {number + 1}, a {one.type} of {one.bytes} bytes"
            if one.type == "stylesheet" and (odd := self._odd(led)):
                return f"{what}, leads to a {odd}, which styles cannot name"
            if one.type == "stylesheet" and (further := self._behind(led)):
                return f"{what}, leads to a {further} that leads to others, which nothing names"
            if self.names[number] not in self.files:
                return f"{what}, is too small to name the {len(led)} that it leads to"
        return None

    def _led(self, number: int) -> list[int]:
        """The resources that a resource leads to."""
        return [other for other, one in enumerate(self.page) if one.initiator == number]

    def _odd(self, led: Sequence[int]) -> str | None:
        kinds = [self.page[one].type for one in led]
        return next((kind for kind in kinds if kind not in ("font", "image", "stylesheet")), None)

    def _behind(self, led: Sequence[int]) -> str | None:
        """The type of those, which have no script, that leads to others; None if none does."""
        kinds = [self.page[one].type for one in led if self._led(one)]
        return next((kind for kind in kinds if kind not in NAMING), None)

    def _body(self, number: int) -> bytes | None:
        """The content of a resource; None if it has none. Without room it is longer than the resource."""
        one = self.page[number]
        if one.type == "document":
            return self._document(number)
        if one.type == "stylesheet":
            return _padded("".join(self._styles(number)), one.bytes, "/*", "*/")
        if one.type == "script":
            return _padded("".join(self._call(other) for other in self._led(number)), one.bytes, "/*", "*/")
        if one.type == "fetch":  # JSON: browsers return text as text
            return _text(one.bytes, '"', '"').encode()
        return picture.png(one.bytes) if one.type == "image" else None

    def _document(self, number: int) -> bytes:
        size = self.page[number].bytes
        out = _BEGIN if number == 0 or self._led(number) else ""
        if self._has_calls(number):
            out += _ASKER
        named = [
            _Reference(self._markup(other), _place(self.page[other].found_after_bytes, size))
            for other in self._led(number)
        ]
        named.append(_Reference("".join(self._texts(number)), size // _HEAD))
        left = sum(len(one.text) for one in named)
        for one in sorted(named, key=lambda one: one.found_after):
            gap = min(one.found_after - len(out) - len(one.text), size - len(out) - left)
            out += _filler(gap, "<!--", "-->") + one.text
            left -= len(one.text)
        return _padded(out, size, "<!--", "-->")

    def _has_calls(self, number: int) -> bool:
        """Whether the asker is needed: by the document, or by scripts."""
        led = self._led(number)
        own = any(self._is_called(other) or self.page[other].type == "script" for other in led)
        return own or any(self._has_calls(other) for other in led if self.page[other].type != "document")

    def _is_called(self, number: int) -> bool:
        """Whether no markup alone asks for what a document leads to."""
        one = self.page[number]
        return one.wait_ms > 0 or one.type in ("media", "fetch", "other") or bool(self._then(number))

    def _markup(self, number: int) -> str:
        if self._is_called(number):
            return f"<script>{self._call(number)}</script>"
        name = self.names[number]
        return {
            "stylesheet": f"<link rel=stylesheet href={name}>",
            "script": f"<script src={name}></script>",
            "image": f"<img src={name}>",
            "font": f"<link rel=preload as=font crossorigin href={name}>",
            "document": f"<iframe src={name}></iframe>",
        }[self.page[number].type]

    def _call(self, number: int) -> str:
        """A script's code that requests a resource, and then those that it leads to."""
        one = self.page[number]
        kind = _ELEMENTS.get(one.type, "fetch")
        then = self._then(number)
        return f"g('{kind}','{self.names[number]}',{one.wait_ms}{then and f',()=>{{{then}}}'});"

    def _then(self, number: int) -> str:
        if self.page[number].type in NAMING:
            return ""
        return "".join(self._call(other) for other in self._led(number))

    def _styles(self, number: int) -> Iterator[str]:
        led = [(other, self.page[other].type, self.names[other]) for other in self._led(number)]
        for _, kind, name in led:
            if kind == "stylesheet":
                yield f"@import'{name}';"
        for other, kind, name in led:
            if kind == "font":
                yield f"@font-face{{font-family:f{other};src:url({name});font-display:swap}}"
                yield f".f{other}{{font-family:f{other}}}"
        images = ",".join(f"url({name})" for _, kind, name in led if kind == "image")
        if images:
            yield f".s{number}{{background:{images}}}"

    def _texts(self, number: int) -> Iterator[str]:
        """Paragraphs, without which styles have neither fonts nor pictures loaded."""
        yield "<p>Text</p>"
        for sheet in self._sheets(number):
            led = self._led(sheet)
            if any(self.page[one].type == "image" for one in led):
                yield f"<p class=s{sheet}>a</p>"
            yield from (f"<p class=f{one}>a</p>" for one in led if self.page[one].type == "font")

    def _sheets(self, number: int) -> Iterator[int]:
        """The stylesheets of a document."""
        for other in self._led(number):
            if self.page[other].type == "stylesheet":
                yield other
            if self.page[other].type != "document":
                yield from self._sheets(other)


def empty_document(size: int) -> bytes:
    """A document of the given number of bytes that leads to no other resource."""
    return _padded(_BEGIN, size, "<!--", "-->")


def _place(found_after: int | None, size: int) -> int:
    return size if found_after is None else found_after


def _padded(text: str, size: int, begin: str, end: str) -> bytes:
    return (text + _filler(size - len(text), begin, end)).encode()


def _filler(size: int, begin: str, end: str) -> str:
    """So many characters of a comment that do not compress well."""
    return _text(size, begin, end) if size >= len(begin) + len(end) else " " * size


def _text(size: int, begin: str, end: str) -> str:
    """So many characters that do not compress well, between those; a number where there is no room."""
    inner = size - len(begin) - len(end)
    if inner < 0:
        return "1" * size
    drawn = hashlib.shake_128(f"bentpipe {begin} {size}".encode()).digest(inner)
    return begin + base64.b64encode(drawn).decode().replace("/", "_")[:inner] + end
