"""Hand-made outputs of a notebook, and helpers to change and show them."""

import copy
import json
from pathlib import Path

import nbformat

from tests.interface import MIME_TYPE

_GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "recording.json").read_text())
# Keys whose strings have a fixed set of values.
KEPT = ("status", "consequence", "zlib", "crossings", "method")


def recording():
    """Return fresh facts and measurements of three sites and six calls, which tests may change.

    They have no profile, with which a view would begin at its tab Time.
    """
    facts, measured = (copy.deepcopy(_GOLDEN[part][MIME_TYPE]) for part in ("data", "metadata"))
    del measured["profile"]
    return facts, measured


def output(facts, measured):
    """Return a cell output with this recording."""
    return nbformat.from_dict(
        {
            "output_type": "display_data",
            "data": {"text/plain": "a recording", MIME_TYPE: facts},
            "metadata": {MIME_TYPE: measured},
        }
    )


def poisoned(value, poison, key=""):
    """Return `value` with every free string and key replaced by `poison`."""
    if isinstance(value, str):
        return value if key in KEPT else poison
    if key == "axes":  # words with a fixed set of values, too
        return value
    if key == "headline":
        return [[tone, poison] for tone, _ in value]
    if isinstance(value, list):
        return [poisoned(item, poison, key) for item in value]
    if isinstance(value, dict):
        renamed = {poison: poison} if key == "environment" else {}
        return renamed | {name: poisoned(item, poison, name) for name, item in value.items()}
    return value


def paths(value, at=()):
    """Yield the path of every value inside a JSON value, beginning with its own path ()."""
    yield at
    if isinstance(value, dict | list):
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in inner:
            yield from paths(item, (*at, key))


def replaced(value, path, by):
    """Return a copy of `value` with the value at `path` replaced."""
    if not path:
        return by
    changed = copy.deepcopy(value)
    holder = changed
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = by
    return changed


def open_everything(view):
    """Expand a view: its body, all its lists, and the calls."""
    view.locator(".jaxcb-disclosure").click()
    view.locator(".jaxcb-site-fold[aria-expanded=false]").evaluate_all(
        "all => all.forEach(each => each.click())"
    )
    view.locator("details").evaluate_all("all => all.forEach(each => { each.open = true; })")
    tab = view.get_by_role("tab", name="Calls")
    if tab.is_visible():
        tab.click()
        view.locator(".jaxcb-calls > :not([role=status])").first.wait_for()
