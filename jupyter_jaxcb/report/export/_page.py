"""Write a recording as one interactive HTML page that needs no network and no kernel.

The page has the view of the notebook (`labextension/src/page`) with every host call. Readers
without scripts see the table of call sites instead.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.resources
import json
from typing import BinaryIO

from ...recording import Html, Recording, between, element, on_one_line
from ..frontend import to_page
from ..profile import to_html, to_text

NOTHING = "no host calls, and no callbacks in the compiled programs"


def write_page(recording: Recording, file: BinaryIO) -> None:
    """Write `recording` with its sample values; the page may load nothing and send nothing."""
    script = _built("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    )
    # Expanded, because a file is opened to read the table.
    table = to_html(recording, times=True, is_open=True) or element("p", NOTHING)
    # In a script element only "<" has a meaning: it begins "</script" and "<!--".
    data = json.dumps(to_page(recording), separators=(",", ":")).replace("<", r"\u003c")
    head = (
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("title", _title(recording)),
        element("style", _built("widget.css") + _built("page.css")),
    )
    body = (
        element("h1", "Host trace"),
        *_run(recording),
        element("main", table, element("p", versions(recording)), id="jaxcb-page"),
        element("script", data, type="application/json", id="jaxcb-recording"),
        element("script", script),
    )
    page = element(
        "html",
        *(element(tag, between("\n", parts)) for tag, parts in (("head", head), ("body", body))),
        lang="en",
    )
    file.write(f"<!doctype html>\n{page}\n".encode("utf-8", "backslashreplace"))


def versions(recording: Recording) -> str:
    """Return ``jax 0.10.2, backend cpu``, after the script, its arguments and the date."""
    return on_one_line(", ".join(f"{name} {word}" for name, word in recording.environment.items()))


def _run(recording: Recording) -> list[Html]:
    """Return ``train.py --steps 3 · 2026-11-27 09:30 +0100``; nothing if it is unknown."""
    known = recording.environment
    command = " ".join(known[name] for name in ("script", "arguments") if name in known)
    parts = element("code", command) if command else "", known.get("date", "")
    words = between(" · ", parts)
    return [element("p", words, class_="jaxcb-run")] if words else []


def _title(recording: Recording) -> str:
    headline = to_text(recording, times=False).partition("\n")[0]
    script = recording.environment.get("script", "")
    return " · ".join(filter(None, (script, "Host trace", headline)))


def _built(name: str) -> str:
    path = importlib.resources.files("jupyter_jaxcb") / "static" / name
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"cannot write an .html page: {path} is missing. Run `make frontend` in the checkout, "
            "or install jupyter_jaxcb again; the other formats work without it."
        ) from error
