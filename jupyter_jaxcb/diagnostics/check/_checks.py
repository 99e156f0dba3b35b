"""The list of checks, those of single calls, and how they are run.

A check yields pairs, what is wrong and what to do about it, or texts that say what it left out.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from jax.tree_util import tree_leaves

from ... import jax_compat
from ...capabilities.lint import impurities, jax_inside
from ...recording import Check, Finding, Frame
from ...stack.errors import message_of
from ...stack.results import ResultError, kind_of
from ...stack.trace import is_cell
from ._batches import check_rows, check_vmap
from ._compare import EXACT, REPEATED, difference
from ._derivative import check_derivative
from ._linear import check_linear
from ._subject import OutOfTime, Subject, Wrong, one_line
from ._threads import check_threads, threads_of

_DISTINCT = 1e-13  # relative difference from which on numbers in float64 are not rounding errors
_RESULT, _TWICE, _INPUTS = "declared result", "same inputs twice", "inputs unchanged"
_one_at_a_time = threading.RLock()  # sys.stdout is replaced for one check


def checked(subject: Subject) -> Check:
    """Run the checks of one callback, one after the other."""
    found: dict[str, list[Any]] = {}
    executor = subject.settings.get("executor")

    def is_repeatable() -> bool:
        return not any(isinstance(entry, Finding) for entry in found.get(_TWICE, ()))

    def run(kind: str, check: Callable[[Subject], Iterable[Any]]) -> None:
        is_first, entries = kind not in found, found.setdefault(kind, [])
        if entries or (kind in _COMPARING and not is_repeatable()):
            return
        try:
            for entry in check(subject):
                entries.append(Finding(kind, *entry) if type(entry) is tuple else entry)
        except OutOfTime as error:
            entries += [str(error)] if is_first else []

    if subject.has_effects:
        run(_RESULT, _first_result)
        if threads_of(executor):
            found["same in threads"] = [f"an {subject.callback.flavor} function is called once"]
    else:
        output: Any = _Output(sys.stdout, subject.printed)
        with _one_at_a_time, contextlib.redirect_stdout(output):
            run("source", _source)
            run(_RESULT, _first_result)
            options = subject.settings | {"threads": threads_of(executor)}
            for kind, check, option in _CHECKS if subject.result is not None else ():
                if option is None or options.get(option):
                    run(kind, check)
    if not is_repeatable():  # which is why other results differ
        found |= {kind: ["its results are not repeatable"] for kind in _COMPARING if kind in found}
        subject.vmap_methods.clear()
    skipped = {kind: [x for x in entries if type(x) is str] for kind, entries in found.items()}
    return Check(
        subject.name,
        subject.callback.flavor,
        tuple(x for entries in found.values() for x in entries if isinstance(x, Finding)),
        tuple(kind for kind, entries in found.items() if not entries),
        {kind: "; ".join(reasons) for kind, reasons in skipped.items() if reasons},
        subject.vmap_methods,
        tuple(subject.notes),
    )


def _source(subject: Subject) -> Iterator[Wrong]:
    for impurity in impurities(subject.callback.host.current, subject.leading):
        yield f"it {impurity.does}: {impurity.what}, {impurity.place.where}", f"{impurity.advice}."


def _first_result(subject: Subject) -> Iterator[Wrong | Finding]:
    """Run it for the first time, keep its result, and note numbers that became equal."""
    try:
        subject.result = subject.run()
    except ResultError as error:
        yield str(error), "Declare what it returns, or return what it declares."
    except Exception as error:
        if isinstance(error, ValueError) and "read-only" in message_of(error):
            what = f"it fails on read-only arrays: {message_of(error)}"
            yield Finding(_INPUTS, what, _COPY)
        else:
            advice = "Call the undecorated function with NumPy arrays to see where."
            yield f"it fails on these arguments: {one_line(error)}", advice
    leaves = tree_leaves(subject.returned)
    for returned, x, path in zip(leaves, subject.result or (), subject.paths, strict=False):
        if kind_of(x.dtype) == "f" and np.asarray(returned).dtype == np.float64 != x.dtype:
            numbers = np.sort(np.asarray(returned), axis=None)
            with np.errstate(all="ignore"):
                rounded = numbers.astype(x.dtype)
                gaps = np.diff(numbers) > _DISTINCT * np.abs(numbers[1:])
            lost = np.flatnonzero(gaps & (rounded[1:] == rounded[:-1]))
            if lost.size:
                low, high = numbers[lost[0] : lost[0] + 2].tolist()
                subject.notes.append(
                    f"it returns float64{path and f' at {path}'}, and {x.dtype} is declared: "
                    f"{low!r} and {high!r} both become {rounded[lost[0]]}"
                )


def _again(subject: Subject, when: str = "") -> list[Wrong]:
    """Run it again on the same inputs."""
    try:
        wrong = difference(subject.run(), subject.result or (), subject.paths, REPEATED)
        what = f"returns {wrong}" if wrong else ""
    except Exception as error:
        what = f"fails: {one_line(error)}"
    advice = "Register it as io, which is called as often as the program says, or pass what "
    advice += "changes as an argument."
    return [(f"a second call with the same inputs{when} {what}", advice)] if what else []


def _twice(subject: Subject) -> list[Wrong]:
    others = " after calls with other arguments"  # which it may remember
    return _again(subject) or (_again(subject, others) if subject.variants else [])


def _other_results(subject: Subject) -> Iterator[Wrong]:
    if subject.misfit:
        advice = "A compiled program has the same shapes and dtypes for all values: pad the"
        yield subject.misfit, f"{advice} result or convert it to what is declared."


_COPY = (
    "Copy an argument before writing to it, as in np.array(x), or register the function as buffer, "
    "which writes into its result."
)


def _inputs(subject: Subject) -> Iterator[Wrong]:
    """Run it on writable arrays."""
    operands = [array.copy() for array in subject.operands]
    try:
        subject.run(operands, writable=True)
    except Exception as error:
        if not _again(subject):  # else it fails on any arrays
            advice = "Accept both read-only arrays, as from programs, and writable ones."
            yield f"it fails on writable arrays: {one_line(error)}", advice
        return
    wrong = difference(operands, subject.operands, subject.names, EXACT)
    if wrong:
        yield f"after the call its input is {wrong}", _COPY


def _jax_inside(subject: Subject) -> Iterator[Wrong | str]:
    """Look for JAX in its code, and in what it does."""
    if subject.settings.get("arrays") == "jax":
        yield 'it is registered with arrays="jax"'
        return

    def call() -> None:
        with contextlib.suppress(Exception):  # reported by the checks that compare results
            subject.run()

    use: Any = jax_inside(subject.callback.host)
    seen = None if use else jax_compat.first_operation(call)
    if seen:
        use = Frame("", *seen, cell=is_cell(seen[0])).where
    if use:
        yield f"it uses JAX: {use}", "Use NumPy in the host function: JAX may deadlock there."


def _no_printing(subject: Subject) -> Iterator[Wrong | str]:
    line = "".join(subject.printed).strip().partition("\n")[0]
    if any(what.startswith("it prints") for what, _ in _source(subject)):
        yield "see source"
    elif line:
        advice = "Print in a debug callback (jaxcb.debug), or register it as io."
        yield f"it prints {line[:60]!r}", advice


# What runs after a first result, in this order, each with the option that it checks. A kind ends
# with its first finding.
_CHECKS: tuple[tuple[str, Callable[[Subject], Iterable[Any]], str | None], ...] = (
    (_TWICE, _twice, None),
    (_RESULT, _other_results, None),
    (_INPUTS, _inputs, None),
    ("no JAX inside", _jax_inside, None),
    ("vmap contract", check_vmap, None),
    ("derivative rule", check_derivative, None),
    ("linear", check_linear, "linear"),
    ("rows alone", check_rows, "partitioned"),
    (_TWICE, lambda subject: _again(subject, " after all other calls"), None),
    ("same in threads", check_threads, "threads"),  # may leave anything behind
    ("no printing", _no_printing, None),
)
_COMPARING = "vmap contract", "derivative rule", "linear", "rows alone", "same in threads"


class _Output:
    """Stands in for ``sys.stdout``, and keeps what one thread writes to it."""

    def __init__(self, shown: Any, printed: list[str]) -> None:
        self._shown, self._printed, self._thread = shown, printed, threading.get_ident()

    def write(self, text: str) -> int:
        if threading.get_ident() != self._thread:
            return self._shown.write(text)
        self._printed.append(text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._shown, name)
