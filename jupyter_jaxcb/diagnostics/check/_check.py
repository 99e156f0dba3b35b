"""Does a host function keep its contract? It is run, and what it does is looked at."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ...recording import Check, Finding
from ...stack import jax_compat
from ...stack.core import enabled, is_cell, message_of
from ...stack.lint import impurities, jax_inside
from ...stack.register import Callback
from ...stack.results import ResultError
from ..record import Unrecorded
from . import _derivative, _vmap
from ._compare import difference
from ._subject import OutOfTime, Subject, told
from ._vmap import BATCHED, ElementSamples, answers_as_elements, takes_any_batch, vmap_findings

_TWICE = "same inputs twice"
_REPEATED = 0.9  # power of eps: the same call twice, on other memory


class Skipped(NamedTuple):
    """Why something was not looked at."""

    why: str


def check(callback: Callback, *args: Any, **kwargs: Any) -> Check:
    """Runs a registered callback on these arguments, and says where it breaks its contract.

    A pure one is run about ten times, on the same inputs, which may not change and have to give
    the same answer, on others in between, on writable and on read-only ones. Its answers have to be
    as declared, and it may not use JAX. What this thread prints meanwhile is not shown. A buffer
    callback has to write all of its output, too. One of flavor io or debug is run once.

    If its `vmap_method` hands it batches, or it is a ufunc, it is run on about ten batches, which
    have to answer as their elements do one by one (a number of Python's among arrays is taken as not
    mapped). A function of another method gets none: it never promised to take any.

    If it has a derivative rule, it is run nine times beside each argument, or 25 times where the
    function is not smooth, and the rule is held against that. Of many arguments four are looked at
    one by one, the others together.

    After ten seconds no more run begins, and the rest is not checked. The runs are not recorded,
    nor is anything else in this process meanwhile.

    Args:
        callback: what a decorator or ``%%jax_callback`` made.
        *args: as it would be called with.
        **kwargs: as it would be called with.

    Returns:
        A `Check`: `ok`, and `findings` with the values that show them.

    Raises:
        TypeError: `callback` is no registered callback, or the arguments do not fit it.
        ValueError: what it declares cannot be evaluated for these arguments.

    >>> import numpy as np, jupyter_jaxcb as jaxcb
    >>> @jaxcb.pure(result="x", vmap_method="expand_dims")
    ... def scaled(x):
    ...     return x / x.max()
    >>> found = jaxcb.check(scaled, np.float32([1.0, 2.0]))
    >>> found.ok, found.findings[0].kind
    (False, 'vmap contract')
    """
    __tracebackhide__ = True
    if not isinstance(callback, Callback) or callback.flavor == "tap":
        raise TypeError(
            f"cannot check {callback!r}: it is no registered callback of flavor pure, buffer, io "
            "or debug. Write check(f, x), with f as @jaxcb.pure(...) made it, and its arguments."
        )
    with Unrecorded(), enabled():
        return _Checking(Subject(callback, args, kwargs)).check()


class _Checking:
    """The checks of one callback, one after the other."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._findings: list[Finding] = []
        self._kept: list[str] = []
        self._left_out: dict[str, str] = {}
        self._methods: dict[str, bool] = {}
        self._answer: list[np.ndarray] = []

    @functools.cached_property
    def _elements(self) -> ElementSamples:
        return ElementSamples(self._subject)

    def check(self) -> Check:
        subject = self._subject
        repeatable = subject.callback.flavor in ("pure", "buffer")
        if repeatable := repeatable and not subject.settings.get("has_side_effect"):
            self._look("source", self._source)
        if self._look("declared result", self._declared) and repeatable:
            again = self._look(_TWICE, self._twice)
            self._look_at_others()
            self._look("inputs unchanged", self._unchanged)
            self._look("no JAX inside", self._no_jax)
            if again:
                self._look(_vmap.KIND, self._vmap)
                self._look(_derivative.KIND, self._derivative)
                again = self._last()
            if not again:
                self._forget(_vmap.KIND, _derivative.KIND)
            if not any(one.what.startswith("it prints") for one in self._findings):
                self._look("no printing", self._printed)
        return Check(
            subject.name,
            subject.callback.flavor,
            tuple(self._findings),
            tuple(self._kept),
            self._left_out,
            self._methods,
        )

    def _look(self, kind: str, look: Callable[[], Iterator[Finding | Skipped]]) -> bool:
        """Whether `look` found nothing."""
        found: list[Finding | Skipped] = []
        try:
            found.extend(look())
        except OutOfTime as late:
            found.append(Skipped(str(late)))
        findings = [one for one in found if isinstance(one, Finding)]
        skipped = [one.why for one in found if isinstance(one, Skipped)]
        self._findings += findings
        if skipped:
            self._left_out[kind] = "; ".join(skipped)
        elif not findings:
            self._kept.append(kind)
        return not findings

    def _last(self) -> bool:
        """Whether it answers after all these calls what it answered at first."""
        try:
            found = list(self._again(", called once more after all others,"))
        except OutOfTime:
            return True
        self._findings += found
        if found:
            self._kept.remove(_TWICE)
        return not found

    def _look_at_others(self) -> None:
        """Did it answer as declared for values that were made up?"""
        if "_elements" in self.__dict__ and self._elements.misfit:
            self._kept.remove("declared result")
            advice = (
                "A compiled program has one shape and dtype for all values: declare that, and fill "
                "it up or convert to it."
            )
            self._findings.append(Finding("declared result", self._elements.misfit, advice))

    def _forget(self, *kinds: str) -> None:
        """What was said of answers that change is no finding."""
        self._findings = [one for one in self._findings if one.kind not in kinds]
        self._kept = [kind for kind in self._kept if kind not in kinds]
        self._left_out |= dict.fromkeys(kinds, "it does not answer the same twice")
        self._methods = {}

    def _source(self) -> Iterator[Finding]:
        for one in impurities(self._subject.callback.host.current, self._subject.leading):
            yield Finding("source", f"it {one.does}: {one.what}, {one.where}", f"{one.advice}.")

    def _declared(self) -> Iterator[Finding]:
        """The first run, which has to answer as declared."""
        subject = self._subject
        try:
            self._answer = subject.run()
        except ResultError as error:
            yield Finding("declared result", str(error), "Declare what it answers, or answer that.")
        except Exception as error:
            if _is_read_only(error):
                yield _writes(f"it fails on read-only arrays: {message_of(error)}")
            else:
                yield Finding(
                    "declared result",
                    f"it fails on these arguments: {told(error)}",
                    "Call the function itself with NumPy arrays to see where.",
                )

    def _twice(self) -> Iterator[Finding]:
        """Again; and again after other inputs, which it may remember."""
        found = list(self._again(""))
        if not found:
            for values in list(zip(*self._elements.variants, strict=True))[1:]:
                self._elements.takes(list(values))
            found = list(self._again(", called with other arguments in between,"))
        yield from found

    def _again(self, when: str) -> Iterator[Finding]:
        subject = self._subject
        try:
            wrong = difference(subject.run(), self._answer, subject.paths, _REPEATED)
        except Exception as error:
            wrong = f"the first call answers; the second{when} fails: {told(error)}"
        else:
            wrong = wrong and f"for the same inputs it answers{when} {wrong}"
        if wrong:
            yield Finding(
                _TWICE,
                wrong,
                "Register it as io, which is called as often as the program says; or take what "
                "changes as an argument.",
            )

    def _unchanged(self) -> Iterator[Finding]:
        """On arrays that it could write to."""
        subject = self._subject
        operands = [array.copy() for array in subject.operands]
        try:
            subject.run(operands, writable=True)
        except Exception as error:
            if not list(self._again("")):  # else it is no matter of what arrays it gets
                yield Finding(
                    "inputs unchanged",
                    f"it fails on writable arrays: {told(error)}",
                    "Take arrays as they come: read-only from programs, writable in tests.",
                )
            return
        wrong = difference(operands, subject.operands, subject.names, 1.0)
        if wrong:
            yield _writes(f"afterwards its input is {wrong}")

    def _printed(self) -> Iterator[Finding]:
        text = self._subject.printed.strip().partition("\n")[0]
        if text:
            yield Finding(
                "no printing",
                f"it prints {text[:60]!r}",
                "Print in a debug callback (jaxcb.debug), or register it as io.",
            )

    def _no_jax(self) -> Iterator[Finding | Skipped]:
        subject = self._subject
        if subject.settings.get("arrays") == "jax":
            yield Skipped('it takes JAX arrays, arrays="jax"')
            return
        use = jax_inside(subject.callback.host)
        seen = None if use else jax_compat.first_operation(self._call)
        if use or seen:
            yield Finding(
                "no JAX inside",
                f"it uses JAX: {use or _where(*seen)}",  # type: ignore[misc]
                "Compute with NumPy in the host function: JAX in there can wait for ever.",
            )

    def _call(self) -> None:
        with contextlib.suppress(Exception):  # told where its answers are compared
            self._subject.call()

    def _vmap(self) -> Iterator[Finding | Skipped]:
        subject = self._subject
        method = subject.settings.get("vmap_method")
        if method in BATCHED:
            yield from vmap_findings(self._elements, method)
        elif not subject.operands or not subject.avals:
            yield Skipped("nothing to map over")
        elif not takes_any_batch(subject.callback.host.current):
            each = "each batch element is a call of its own"
            yield Skipped(f"{method}: {each}" if method else "vmap_method=None: vmap refuses it")
        else:
            for method in BATCHED:
                self._methods[method] = answers_as_elements(self._elements, method)

    def _derivative(self) -> Iterator[Finding | Skipped]:
        if self._subject.callback.rule not in ("jvp", "vjp"):
            yield Skipped("it has none" if not self._subject.callback.rule else "it is differences")
            return
        for one in _derivative.derivative_findings(self._subject, self._answer):
            yield Skipped(one) if isinstance(one, str) else one


def _writes(what: str) -> Finding:
    return Finding(
        "inputs unchanged",
        what,
        "Copy an argument before writing to it, np.array(x); or register it as buffer, which "
        "writes into its result.",
    )


def _is_read_only(error: Exception) -> bool:
    return isinstance(error, ValueError) and "read-only" in message_of(error)


def _where(file: str, line: int) -> str:
    return f"line {line}" if is_cell(file) else f"{os.path.basename(file)}:{line}"
