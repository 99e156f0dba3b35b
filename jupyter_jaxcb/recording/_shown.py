"""The doors of everything that is shown: text without control characters, and HTML.

Names, lines of code and messages come from files and from other people's programs. `visible` is
what all text passes, and `element` is what makes HTML. What `print` and notebooks show of a
recording is registered here by the layers above.
"""

from __future__ import annotations

import functools
import importlib.resources
import re
from collections.abc import Callable, Iterable
from html import escape
from typing import Any

TEXTS: dict[type, Callable[[Any], str]] = {}
BUNDLES: dict[type, Callable[[Any], tuple[dict, dict]]] = {}  # data and metadata for Jupyter
PAGES: dict[type, Callable[[Any], str]] = {}  # HTML for notebooks
WIDGETS: dict[type, Callable[[Any], Any]] = {}  # for marimo

# Characters that a terminal obeys, that change the order in which others are read, or that nobody
# sees. Joiners belong to emoji and to some scripts: they stay between two characters of these.
_OTHERS = "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b"
_OTHERS += "\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"
_OTHERS += "\U000e0000-\U000e00ff\ud800-\udfff"
_HIDDEN = re.compile(f"[{_OTHERS}]|(?<![^\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f])")
_RAW = ("script", "style")  # elements whose text has no escapes
_ENDS = re.compile(r"</(script|style)|<!--", re.IGNORECASE)
_VOID = ("br", "meta")
_EMPTY = ("path", "polygon", "polyline", "rect")  # of SVG


def printed(thing: Any) -> str:
    """Return the text of a recording, an outcome or a matrix; its repr if it is empty."""
    text = TEXTS.get(type(thing))
    return (text and text(thing)) or repr(thing)


def visible(text: str) -> str:
    r"""Return `text` with escapes for what a terminal obeys, and for what nobody sees.

    These are control characters but tabs and line ends, marks of direction, characters without
    width, and lone surrogates: ``\x1b[2J``, ``\u202e``. Other characters stay, in every language.
    """
    return text if text.isascii() and text.isprintable() else _HIDDEN.sub(_escaped, text)


def on_one_line(text: str) -> str:
    r"""As `visible`, with ``\n`` and ``\t`` for line ends and tabs."""
    return visible(text).replace("\n", r"\n").replace("\t", r"\t")


def _escaped(found: re.Match[str]) -> str:
    return ascii(found[0])[1:-1]


# What begins a formula in a spreadsheet, also in the wide forms of East Asian keyboards.
_FORMULAS = tuple("=+-@\t\r\uff1d\uff0b\uff0d\uff20")


def spreadsheet_cell(cell: Any) -> Any:
    """Put an apostrophe before text that a spreadsheet would read as a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULAS) else cell


class Html(str):
    """Finished HTML. Only `element` and `html` make it; every other string is text."""

    __slots__ = ()


Child = str | int | None


def element(tag: str, *children: Child, **attributes: str | int | bool | None) -> Html:
    """Return an element; strings become text and values of attributes, never HTML.

    Args:
        tag: its name.
        children: text, numbers, or `Html`; None and empty strings are left out.
        attributes: ``class_`` is ``class``, and ``aria_label`` ``aria-label``. None and False are
            left out, and True has no value.
    """
    begin = f"<{tag}{''.join(map(_attribute, attributes, attributes.values()))}"
    if tag in _VOID:
        return Html(f"{begin}>")
    if tag in _EMPTY and not children:
        return Html(f"{begin}/>")
    if tag in _RAW:
        text = "".join(map(str, children))
        if end := _ENDS.search(text):
            raise ValueError(
                f"a {tag} element cannot contain {end[0]!r}. Escape it in its language."
            )
        return Html(f"{begin}>{text}</{tag}>")
    return Html(f"{begin}>{html(*children)}</{tag}>")


def html(*parts: Child) -> Html:
    """Return what stands side by side; strings become text."""
    return Html("".join(map(_part, parts)))


@functools.cache
def compact_css(module: str, file: str) -> str:
    """Return the style sheet `file` beside a module, without comments and line ends."""
    path = importlib.resources.files(module.rpartition(".")[0]) / file
    text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    text = re.sub(r"\s*([{};,])\s*", r"\1", " ".join(text.split()))
    return text.replace(": ", ":")  # a space before a colon belongs to a selector


def between(separator: Child, parts: Iterable[Child]) -> Html:
    """Return the parts that are not empty, with a separator between them."""
    return Html(_part(separator).join(filter(None, map(_part, parts))))


def _part(part: Child) -> str:
    if isinstance(part, Html):
        return part
    return "" if part is None else escape(visible(str(part))).replace("\xa0", "&nbsp;")


def _attribute(name: str, value: str | int | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = name.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{_part(str(value))}"'
