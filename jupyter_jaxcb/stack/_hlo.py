"""The optimised program, read for one thing: where its host calls are."""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) \([^\n]*\{$", re.M)
_CALL = re.compile(
    r'custom_call_target="xla_(?:ffi|ffi_partitioned|buffer)_python_\w+_callback(?:_cmd_buffer)?"'
)
_INDEX = re.compile(r"index = (\d+)")
_OP_NAME = re.compile(r'op_name="([^"]*)"')
_BODY = re.compile(r"\bbody=%?([\w.\-]+)")
_CONDITION = re.compile(r"\bcondition=%?([\w.\-]+)")
_BRANCHES = re.compile(
    r"\b(?:true_computation|false_computation)=%?([\w.\-]+)|branch_computations=\{([^}]*)\}"
)
_OTHERS = re.compile(r"\b(?:to_apply|calls)=%?([\w.\-]+)|called_computations=\{([^}]*)\}")
_TRIPS = re.compile(r'known_trip_count"?:\s*\{"?n"?:\s*"?(\d+)')
MAX_WAYS = 10_000  # to one computation; more are not told apart


class Around(NamedTuple):
    """One loop or branch that an instruction is in."""

    kind: str  # "loop" or "branch"
    times: int | None  # how often a loop runs what is in it; None: depends on data


class HostCallInstruction(NamedTuple):
    """One way in which a run of the program may come to a host call."""

    op_name: str  # the transformations and control flow that JAX noted
    around: tuple[Around, ...]  # outermost first

    @property
    def calls(self) -> int | None:
        """How often a run gets there; None: depends on data."""
        product = 1
        for step in self.around:
            if step.times is None:
                return None
            product *= step.times
        return product


def host_calls(text: str) -> dict[int, list[HostCallInstruction]]:
    """The host calls of an optimised module, by their index among the program's callbacks.

    Raises:
        ValueError: the text is not what XLA is known to print; says what is missing.
    """
    headers = list(_COMPUTATION.finditer(text))
    if not any(header[1] for header in headers):
        raise ValueError("it has no ENTRY computation")
    module = _Module(text, headers)
    found: dict[int, list[HostCallInstruction]] = {}
    for call in _CALL.finditer(text):
        line = module.line_at(call.start())
        index, name = _INDEX.search(line), _OP_NAME.search(line)
        if index is None:
            raise ValueError("a host call has no index")
        ways = module.ways(module.computation_at(call.start()))
        found.setdefault(int(index[1]), []).extend(
            HostCallInstruction(name[1] if name else "", way) for way in ways
        )
    return found


class _Module:
    """Who calls which computation of a module; found for those that are asked for."""

    def __init__(self, text: str, headers: list[re.Match]) -> None:
        self._text = text
        self._starts = [header.start() for header in headers]
        self._names = [header[2] for header in headers]
        entry = next(header[2] for header in headers if header[1])
        self._ways: dict[str, list[tuple[Around, ...]]] = {entry: [()]}

    def line_at(self, position: int) -> str:
        start = self._text.rfind("\n", 0, position) + 1
        return self._text[start : self._text.find("\n", position)]

    def computation_at(self, position: int) -> str:
        return self._names[bisect.bisect_right(self._starts, position) - 1]

    def ways(self, computation: str) -> list[tuple[Around, ...]]:
        """The loops and branches around a computation, for each way to it from the entry."""
        if computation not in self._ways:
            self._ways[computation] = []  # nothing calls itself in HLO
            found = [
                way if around is None else (*way, around)
                for caller, around in self._callers(computation)
                for way in self.ways(caller)
            ]
            if len(found) > MAX_WAYS:
                raise ValueError(f"there are more than {MAX_WAYS:,} ways to one computation")
            self._ways[computation] = found
        return self._ways[computation]

    def _callers(self, computation: str) -> Iterator[tuple[str, Around | None]]:
        named = re.compile(rf"[={{ ,]%?{re.escape(computation)}(?![\w.\-])")
        lines = dict.fromkeys(
            self._text.rfind("\n", 0, found.start()) + 1 for found in named.finditer(self._text)
        )
        for start in lines:
            for callee, around in _callees(self.line_at(start)):
                if callee == computation:
                    yield self.computation_at(start), around


def _callees(line: str) -> Iterator[tuple[str, Around | None]]:
    body = _BODY.search(line)
    if body is not None:
        trips = _TRIPS.search(line)
        count = int(trips[1]) if trips else None
        yield body[1], Around("loop", count)
        condition = _CONDITION.search(line)
        if condition is not None:
            yield condition[1], Around("loop", None if count is None else count + 1)
    for one, several in _BRANCHES.findall(line):
        # XLA itself puts a call that one of several devices makes into a branch.
        own = re.search(r'op_name="[^"]*(?:_callback|debug_print)"', line)
        for name in _names(one, several):
            yield name, None if own else Around("branch", None)
    for one, several in _OTHERS.findall(line):
        for name in _names(one, several):
            yield name, None


def _names(one: str, several: str) -> list[str]:
    return [name.strip().lstrip("%") for name in (several.split(",") if several else [one])]


def instructions_by_index(
    read: Callable[[], str],
) -> tuple[dict[int, list[HostCallInstruction]], str]:
    """The host calls of the optimised program that `read` gives; or why they are not known."""
    try:
        return host_calls(read()), ""
    except Exception as error:  # whatever a later JAX or XLA does differently
        return {}, f"{type(error).__name__}: {error}"
