"""Read the JSON that a view of the front end saves (``labextension/src/view/export/json.ts``).

It has the host calls with names instead of numbers, and nothing about compiled programs. A call
whose crossing the view does not know gets one of its own; what else it does not know is empty or 0.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np

from .._columns import ROW
from .._facts import Aval, Compilation, LoweredSite, Program, Site
from ._decode import Decoder, check_elements, damaged, environment

_AVAL = re.compile(r"([^\s[\]]+)\[((?:\d{1,18}(?:,\d{1,18})*)?)\]", re.ASCII)
_OF_SITE = ("flavor", "function", "where", "operands", "results")
_UNKNOWN = Program("", "")


def is_of_view(data: dict[str, Any]) -> bool:
    """Return whether `data` is from a view: a recording has an object of columns as ``calls``."""
    return isinstance(data.get("calls"), list)


def fields_of_view(data: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a recording with the host calls that a view saved.

    Raises:
        RecordingFileError: `data` is damaged.
    """
    listed = data["calls"]
    if not all(isinstance(one, dict) for one in listed):
        raise damaged("calls", "a list of objects", listed)
    places = _numbers(zip(*(_texts(listed, name) for name in _OF_SITE), strict=True))
    threads = _numbers(_texts(listed, "thread"))
    errors = {"": 0}  # first: no error
    errors = _numbers(_texts(listed, "error"), errors)
    calls = np.zeros(len(listed), ROW)
    calls["start_ns"] = _integers(listed, "start_ns")
    calls["end_ns"] = calls["start_ns"] + _integers(listed, "duration_ns")
    calls["crossing"] = _crossings(listed)
    calls["element"] = [_element(text) for text in _texts(listed, "element")]
    calls["thread"] = [threads[one["thread"]] for one in listed]
    calls["error"] = [errors[one["error"]] for one in listed]
    calls["lowered"] = [places[tuple(one[name] for name in _OF_SITE)] for one in listed]
    sites = _sites(data)
    return {
        "calls": calls,
        "lowered": tuple(_lowered(sites, *words) for words in places),
        "threads": tuple(threads),
        "errors": tuple(errors)[1:],
        "environment": environment(data.get("environment")),
        "compilations": tuple(
            map(_compilation, Decoder.list(data.get("compilations"), "compilations"))
        ),
    }


def _numbers(words: Any, known: dict[Any, int] | None = None) -> dict[Any, int]:
    """Number distinct words in order."""
    found = dict(known or {})
    for word in words:
        found.setdefault(word, len(found))
    return found


def _texts(calls: list[Any], name: str) -> list[str]:
    column = [one.get(name) for one in calls]
    for one in column:
        if type(one) is not str:
            raise damaged(f"calls.{name}", "a string", one)
    return column


def _integers(calls: list[Any], name: str) -> np.ndarray:
    decoder = Decoder()
    return np.array([decoder.of(int, one.get(name), f"calls.{name}") for one in calls], np.int64)


def _crossings(calls: list[Any]) -> list[int]:
    """Number the crossings in order of their first calls."""
    decoder = Decoder()
    named = [decoder.of(int | None, one.get("crossing"), "calls.crossing") for one in calls]
    keys = [(number, row if number is None else -1) for row, number in enumerate(named)]
    numbers = _numbers(keys)
    return [numbers[key] for key in keys]


def _element(text: str) -> int:
    if not text:
        return -1
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise damaged("calls.element", "a number or empty", text)
    return int(text)


def _sites(data: dict[str, Any]) -> dict[tuple[str, ...], Site]:
    """Return the call sites by flavor, function and place."""
    decoder, found = Decoder(), {}
    for one in decoder.list(data.get("sites"), "sites"):
        if not isinstance(one, dict):
            raise damaged("sites", "a list of objects", one)
        hints = {name: str for name in ("flavor", "function", "where", "source")}
        hints |= {"line": int, "column": int, "cell": bool}
        own = {
            name: decoder.of(hint, one.get(name), f"sites.{name}") for name, hint in hints.items()
        }
        where = own.pop("where")
        site = Site(file="" if own["cell"] else where.partition(":")[0], **own)
        found[site.flavor, site.function, where] = _placed(site, where)
    return found


def _placed(site: Site, where: str) -> Site:
    """Return `site`; if `where` says more than its file and line, they are those words."""
    return site if site.where == where else dataclasses.replace(site, file=where, line=0)


def _lowered(
    sites: dict[tuple[str, ...], Site],
    flavor: str,
    function: str,
    where: str,
    operands: str,
    results: str,
) -> LoweredSite:
    unknown = Site(flavor, function, where, 0, 0, cell=False)  # of more sites than the view lists
    site = sites.get((flavor, function, where), unknown)
    return LoweredSite(site, _UNKNOWN, -1, _avals(operands), _avals(results))


def _avals(words: str) -> tuple[Aval, ...]:
    found = []
    for word in words.split():
        parts = _AVAL.fullmatch(word)
        if parts is None:
            raise damaged("calls.operands", "dtypes and shapes as float32[3]", word)
        shape = tuple(map(int, filter(None, parts[2].split(","))))
        check_elements(shape, "calls.operands")
        found.append(Aval(shape, parts[1]))
    return tuple(found)


def _compilation(data: Any) -> Compilation:
    decoder = Decoder()
    if not isinstance(data, dict):
        raise damaged("compilations", "a list of objects", data)
    lower, compile_ = (
        decoder.of(int, data.get(name), f"compilations.{name}")
        for name in ("lower_ns", "compile_ns")
    )
    program = decoder.of(str, data.get("program"), "compilations.program")
    start = decoder.of(int | None, data.get("start_ns"), "compilations.start_ns")
    end = 0 if start is None else start + lower + compile_  # 0: unknown
    if max(map(abs, (lower, compile_, end))) > 1 << 60:
        raise damaged("compilations", "times of less than 36 years", (lower, compile_, start))
    return Compilation(Program(program, ""), 0, (), lower, compile_, end_ns=end)
