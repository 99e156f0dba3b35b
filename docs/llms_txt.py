"""Write ``llms.txt``, the list of all pages for assistants (llmstxt.org)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")

# "1. [Quickstart](tutorials/01-quickstart.md): SciPy's functions", on one line or several
_LISTED = re.compile(r"\]\((?:[^)]*/)?([\w-]+)\.md\): (.*(?:\n {2,}\S.*)*)")


def llms_txt(pages: Mapping[str, str], below: Mapping[str, Sequence[str]]) -> str:
    """Return a title, a sentence, and by section a link to each page with what it answers.

    Args:
        pages: the Markdown of each page by its name, as ``guide/profile``.
        below: the pages in the table of contents of a page, in order; that of ``index`` has the
            sections.
    """
    first = pages["index"]
    single = [name for name in below["index"] if name not in below]
    parts = [f"# {_title(first)}", f"> {_answer(first)}", "## Overview"]
    parts.append(_links(pages, ["index", *single]))
    for name in below["index"]:
        if name in below:
            parts += [f"## {_title(pages[name])}", _links(pages, [name, *below[name]])]
    return "\n\n".join(parts) + "\n"


def _links(pages: Mapping[str, str], names: Sequence[str]) -> str:
    """Return a line for each page, with the words beside its link on the first one, if any."""
    beside = dict(_LISTED.findall(pages[names[0]]))
    return "\n".join(
        f"- [{_title(pages[one])}]({one}.md): "
        + (" ".join(beside.get(one.rpartition("/")[2], "").split()) or _answer(pages[one]))
        for one in names
    )


def _title(text: str) -> str:
    return re.findall(r"^# (.*)$", text, re.MULTILINE)[0]


def _answer(text: str) -> str:
    """Return the first sentence of a page; its headings if it begins with a table or a list."""
    above, *below = re.split(r"^## ", _FENCED.sub("", text), flags=re.MULTILINE)
    paragraphs = (" ".join(_LINK.sub(r"\1", one).split()) for one in above.split("\n\n"))
    said = next((one for one in paragraphs if re.match(r"[\w`%]", one)), "")
    sentence = re.split(r"(?<=[.?!:]) ", said)[0] if said else "; ".join(map(_line, below))
    return sentence if sentence.endswith("?") else f"{sentence.rstrip('.,:')}."


def _line(text: str) -> str:
    return text.partition("\n")[0]
