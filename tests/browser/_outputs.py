"""Outputs of a notebook that no kernel made, and what to look for in a page that shows them."""

import copy
import json
from pathlib import Path

import nbformat

from jupyter_jaxcb.report import MIME_TYPE

_GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "recording.json").read_text())
KEPT = ("status", "zlib", "method")  # keys whose strings mean something


def recording():
    """Facts and what was measured, of three sites and six calls, to be changed as one likes."""
    return tuple(copy.deepcopy(_GOLDEN[part][MIME_TYPE]) for part in ("data", "metadata"))


def output(facts, measured):
    """The output of a cell."""
    return nbformat.from_dict(
        {
            "output_type": "display_data",
            "data": {"text/plain": "a recording", MIME_TYPE: facts},
            "metadata": {MIME_TYPE: measured},
        }
    )


def poisoned(value, poison, key=""):
    """The same with every string and every free key replaced by `poison`."""
    if isinstance(value, str):
        return value if key in KEPT else poison
    if isinstance(value, list):
        return [poisoned(item, poison, key) for item in value]
    if isinstance(value, dict):
        renamed = {poison: poison} if key == "environment" else {}
        return renamed | {name: poisoned(item, poison, name) for name, item in value.items()}
    return value


def paths(value, at=()):
    """Where anything stands in a JSON value, the value itself first."""
    yield at
    if isinstance(value, dict | list):
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in inner:
            yield from paths(item, (*at, key))


def replaced(value, path, by):
    """A copy of `value` with what stands at `path` replaced."""
    if not path:
        return by
    changed = copy.deepcopy(value)
    holder = changed
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = by
    return changed


def open_everything(view):
    """Unfolds a view: its body, every list of it, and the calls."""
    view.locator(".jaxcb-disclosure").click()
    view.locator("details").evaluate_all("all => all.forEach(each => { each.open = true; })")
    tab = view.get_by_role("tab", name="Calls")
    if tab.is_visible():
        tab.click()
        view.locator(".jaxcb-calls > :not([role=status])").first.wait_for()
