"""Write a recording as one interactive HTML page that needs no network and no kernel.

The page has the view of the notebook (`labextension/src/page`) with every host call. Readers
without scripts see the table of call sites instead.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.resources
import json
from html import escape
from typing import BinaryIO

from ...recording import Recording
from ..frontend import to_page
from ..profile import to_html, to_text

NOTHING = "no host calls, and no callbacks in the compiled programs"
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<h1>Host trace</h1>
{run}<main id="jaxcb-page">{table}<p>{versions}</p></main>
<script type="application/json" id="jaxcb-recording">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def write_page(recording: Recording, file: BinaryIO) -> None:
    """Write `recording` with its sample values; the page may load nothing and send nothing."""
    script = _built("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    table = to_html(recording, times=True)
    # Expanded, because a file is opened to read the table.
    table = table.replace('<details class="jaxcb">', '<details class="jaxcb" open>', 1)
    page = _PAGE.format(
        policy="default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"style-src 'unsafe-inline'; script-src 'sha256-{digest}'",
        title=escape(_title(recording)),
        style=_built("widget.css") + _built("page.css"),
        run=_run(recording),
        table=table or f"<p>{NOTHING}</p>",
        versions=escape(versions(recording)),
        # In a script element only "<" has a meaning: it begins "</script" and "<!--".
        data=json.dumps(to_page(recording), separators=(",", ":")).replace("<", r"\u003c"),
        script=script,
    )
    file.write(page.encode("utf-8", "backslashreplace"))  # errors may hold lone surrogates


def versions(recording: Recording) -> str:
    """Return ``jax 0.10.2, backend cpu``, after the script, its arguments and the date."""
    return ", ".join(f"{name} {value}" for name, value in recording.environment.items())


def _run(recording: Recording) -> str:
    """Return ``train.py --steps 3 · 2026-11-27 09:30 +0100``, as HTML; empty if unknown."""
    known = recording.environment
    command = " ".join(known[name] for name in ("script", "arguments") if name in known)
    parts = (f"<code>{escape(command)}</code>" if command else "", escape(known.get("date", "")))
    words = " · ".join(filter(None, parts))
    return f'<p class="jaxcb-run">{words}</p>\n' if words else ""


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
