"""Watch the values of the programs that a block traces."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

import jax

from ... import jax_compat
from ...recording import Html, on_one_line, visible
from ...stack.lowering import forget_open_calls
from ..notes import (
    Following,
    Options,
    Store,
    around_bind,
    chosen,
    condition,
    key,
    receive_into,
    unwatched,
)
from ._compare import Comparison, compare
from ._first_bad import Bad, Mark, first_bad, marks
from ._html import Spot, page
from ._progress import Progress
from ._save import writer_of
from ._series import Row, Series, rows_of, series_of
from ._sink import Sink, Sinking
from ._text import table

_NONE_BAD = {
    "nan": "no value was NaN",
    "inf": "no value was infinite",
    "both": "all values were finite",
}
_LEAF = re.compile(r"\W")  # where the name of a part of a variable begins
Reduction = Callable[[jax.Array], Any]


class Watch:
    """What a block of `watching` has seen so far.

    ``print(seen)`` shows a table by line, with the first bad value below; a notebook shows it with
    plots.

    Attributes:
        series: what each variable was, step by step, in the order of the lines.
        rows: the same as one list in the order of time, for ``pandas.DataFrame(seen.rows)``. Of a
            loop with more than 20,000 steps, the older ones are thinned out; the last 10,000 stay.
        first_bad: the first bad value, which is one sentence as text; None if there was none.

    >>> import jax.numpy as jnp, jupyter_jaxcb as jaxcb
    >>> def train(x):
    ...     for _ in range(3):
    ...         x = x / 2
    ...     return x
    >>> with jaxcb.watching() as seen:
    ...     x = train(jnp.array(8.0))
    >>> seen.series[0].name, seen.series[0].mean.ravel().tolist(), seen.first_bad
    ('x', [4.0, 2.0, 1.0], None)
    """

    def __init__(self, options: Options, sink: Callable[..., None] | None) -> None:
        self._store, self._options = Store(options.stop, sink), options
        self._progress = Progress(self._store)
        self._has_ended: bool | None = None  # False: an exception ended the block
        self._why_nothing = ""  # no variable could be seen

    @property
    def series(self) -> list[Series]:
        return series_of(self._store.histories())

    @property
    def rows(self) -> list[Row]:
        return rows_of(self._store.histories())

    @property
    def first_bad(self) -> Bad | None:
        return first_bad(self._store)

    def so_far(self, seconds: float) -> str:
        """Return how far the loops are that run now, or ran last; "" if none did.

        Args:
            seconds: the time, on any clock that goes on, from which the time left is computed.
        """
        return self._progress.text(seconds)

    def compare(self, before: Watch, *, rtol: float = 0.0) -> Comparison:
        """Compare with what an earlier block saw; as text, a sentence for each difference.

        Variables of one function, name and direction are compared, step by step, also if they are
        on another line now.

        Args:
            before: what the earlier block saw.
            rtol: the relative difference that two numbers may have and count as equal.

        Raises:
            TypeError: `before` is not what another block saw.
            ValueError: `rtol` is no number from 0 to below 1.

        >>> import jax.numpy as jnp, jupyter_jaxcb as jaxcb
        >>> def train(rate):
        ...     x = jnp.array(1.0)
        ...     for _ in range(3):
        ...         x = x - rate * x
        >>> with jaxcb.watching() as before:
        ...     train(0.1)
        >>> with jaxcb.watching() as after:
        ...     train(0.2)
        >>> print(after.compare(before))
        line 4 of train: x differs from step 0 on: 0.8, was 0.9
        """
        if not isinstance(before, Watch):
            raise TypeError(
                f"compare() takes what another block saw, not {on_one_line(repr(before))}."
            )
        return compare(self.series, before.series, rtol)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what was seen to a file, in the format that the ending of its name selects.

        * ``.csv``: the rows, with a column for each field.
        * ``.json``: the mean of each variable as a counter over time, and bad values as events,
          for https://ui.perfetto.dev.
        * ``.html``: the table with its plots, as a page that needs no other file.

        Raises:
            ValueError: the ending is unknown; the message lists the known ones.
            OSError: the file cannot be written, because its folder does not exist, for instance.
        """
        writer_of(path)(self, os.fspath(path))

    def __str__(self) -> str:
        marked = self.marked()
        first = [mark == "first" for _, mark in marked]
        told = [table([one for one, _ in marked], first) if marked else self._no_series()]
        told = told if self._options.rows else []
        bad = [str(self.first_bad)] if self.first_bad else []
        return visible("\n".join([*told, *self._notes(), *bad]))

    def _repr_html_(self) -> str:
        return self.page()[0]

    def page(self, above: str = "") -> tuple[Html, list[Spot]]:
        """Return the table with its plots as HTML, and the lines that it names, in order."""
        return page(self.marked(), self.first_bad, [*self._notes()], above)

    def marked(self) -> list[tuple[Series, Mark]]:
        """Return the series, each with whether it is bad, see `marks`."""
        series = self.series
        return [*zip(series, marks(series, self._store, self.first_bad), strict=True)]

    def _no_series(self) -> str:
        if self._has_ended is None:
            return "no value has arrived yet"
        if not self._has_ended:
            return "the block ended before a value arrived"
        names = self._options.names
        which = f" that {', '.join(map(repr, names))} chooses" if names else ""
        return f"no variable{which} got an array of JAX{self._why_nothing}"

    def _notes(self) -> Iterable[str]:
        for name, count in self._store.left_out.items():
            yield f"{name} has {count:,} more arrays, which are not watched. Assign them to names."
        if self.series:
            yield from self._names_of_nothing()
        elif self._options.rows and (self._why_nothing or not self._has_ended):
            return
        if not self.first_bad:
            text = self._options.bad.text
            given = [one.name for one in self.series if one.totals.nan]
            if text == "nan" and given:
                yield f"no operation of your code gave NaN; it was given in {', '.join(given)}"
            else:
                yield _NONE_BAD.get(text, f"no value had {text}")

    def _names_of_nothing(self) -> Iterable[str]:
        """Return a sentence for each chosen name that no variable has."""
        found = {_LEAF.split(one.name)[0] for one in self.series}
        for name in self._options.names if self._has_ended else ():
            if name.isidentifier() and name not in found:
                yield f"no variable {name!r} got an array of JAX"


class watching:  # used as a function
    """Watch the values of the JAX code in a ``with`` block, which nobody has to edit.

    The variables of your functions are followed, line by line: in code that JAX compiles, inside
    its loops, branches and vmaps, and in Python loops. Numbers are reduced on the device. Code of
    libraries is not followed, but the first bad value is found in it too, and reported at your
    line that called it. Programs are compiled again inside the block, and run as they were after
    it.

    Args:
        names: the variables to watch, as ``"loss, grads"`` or a list; all by default. Also
            ``"step.loss"`` or ``"step.*"`` for those of the function ``step``, and
            ``"model.py:40-60"`` for lines of a file. Only arrays of real or complex numbers are,
            unless you name them.
        first: with "nan", "inf", "both" or a condition on ``x`` such as ``"abs(x) > 1e6"``, only
            the first bad value is looked for, which costs much less.
        stop: end the program there, with FloatingPointError. A program on several devices goes on
            to its end, because the others wait for each of them; then the block raises.
        every: in a compiled loop, send the numbers of every `every`-th step only. Bad values are
            found in all.
        to: called as ``to(step, values)`` with the mean of each variable, such as
            ``{"loss": 0.3}``, step by step on a separate thread. The block waits for it at its
            end, and raises what it raised, or notes it on an exception of the block; after that it
            is not called again. The step counts the runs of the body of a loop, in all calls of
            the program.
        **reductions: more numbers of each array, such as ``norm=jnp.linalg.norm``. Functions of
            one array of any shape that return one real number.

    Returns:
        A context manager, whose value is a `Watch`.

    Raises:
        ValueError: an argument is invalid; the message says what to write.
        RuntimeError: another block watches; leave it first.
        FloatingPointError: at the end of the block, with the first bad value, if it was found with
            ``stop=True``.

    >>> import jax, jax.numpy as jnp, jupyter_jaxcb as jaxcb
    >>> def step(x, _):
    ...     y = jnp.sqrt(x - 1)
    ...     return y, None
    >>> with jaxcb.watching() as seen:
    ...     x, _ = jax.lax.scan(step, 3.0, length=4)
    >>> seen.first_bad.steps, seen.first_bad.expression
    ((2,), 'jnp.sqrt(x - 1)')
    """

    def __init__(
        self,
        names: str | Iterable[str] = (),
        *,
        first: str | None = None,
        stop: bool = False,
        every: int = 1,
        to: Sink | None = None,
        **reductions: Reduction,
    ) -> None:
        if not isinstance(every, int) or every < 1:
            raise ValueError(f"every={every!r} is not a number of steps. Pass 1 or more.")
        for name, reduce in reductions.items():
            if not callable(reduce):
                raise ValueError(
                    f"{name}={on_one_line(repr(reduce))} is no option and no function. Pass a "
                    "function of one array "
                    f"that returns one number, such as {name}=jnp.linalg.norm."
                )
        if to is not None and not callable(to):
            raise ValueError(
                f"to={on_one_line(repr(to))} is not a function. Pass a function of the step and "
                "the values."
            )
        self._to = to
        self._options = Options(
            rows=first is None, bad=condition("nan" if first is None else first),
            names=chosen(names), every=every, reductions=tuple(reductions.items()), stop=stop,
        )  # fmt: skip

    def __enter__(self) -> Watch:
        sinking = Sinking(self._to) if self._to else None
        watch = Watch(self._options, sinking.put if sinking else None)
        if jax_compat.jaxpr_trace() is not None:
            watch._why_nothing = (
                ": JAX was tracing a function when the block began. Put the block around the call "
                "of that function."
            )
        if not jax_compat.is_on("watch"):
            watch._why_nothing = f": {jax_compat.why_off('watch')}"
            self._stack, self._watch = None, watch
            return watch
        changes = jax_compat.Changes()
        with contextlib.ExitStack() as stack:
            if sinking:
                stack.callback(sinking.close)
            receive_into(watch._store)
            stack.callback(receive_into, None)
            stack.callback(forget_open_calls)
            stack.callback(changes.revert)
            jax_compat.intercept_binds(around_bind, changes)
            jax_compat.intercept_other_programs(unwatched, changes)
            stack.enter_context(key(self._options))
            stack.callback(jax.effects_barrier)
            following = Following(watch._store, self._options)
            stack.callback(following.stop)
            following.start(sys._getframe(1))
            self._stack, self._watch, self._following = stack.pop_all(), watch, following
        return watch

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        __tracebackhide__ = True
        self._watch._has_ended = error is None
        if self._stack is None:  # watching is off
            return
        if not self._following.is_on():
            self._watch._why_nothing = (
                ": sys.settrace was called in the block, by a debugger or a coverage tool for "
                "instance, and ended the watching."
            )
        elif self._watch._store.has_other_threads:
            self._watch._why_nothing = self._watch._why_nothing or (
                ": arrays were made in another thread than that of the block. Put the block into "
                "the function that this thread runs."
            )
        try:
            self._stack.close()
        except jax.errors.JaxRuntimeError:  # of a program that the block did not wait for
            if error is None and not self._watch._store.is_stopped:
                raise
        except Exception as failure:  # of the function of `to`
            if error is None:
                raise
            error.add_note(
                f"at the end of the block, to= raised {type(failure).__name__}: {failure}"
            )
        if self._watch._store.is_stopped:
            jax_compat.forget_tokens()
            bad = FloatingPointError(str(self._watch.first_bad))
            raise bad.with_traceback(traceback) from None
        if isinstance(error, jax.errors.JaxRuntimeError) and _is_interrupt(error):
            raise KeyboardInterrupt().with_traceback(traceback) from None
        if self._following.failure is not None and error is None:
            raise self._following.failure


def _is_interrupt(error: jax.errors.JaxRuntimeError) -> bool:
    """Whether XLA made this error of a Ctrl-C that arrived while a program sent its numbers."""
    return str(error).rstrip().rpartition("\n")[2].startswith("KeyboardInterrupt")


def watch(f: Callable[..., Any], names: str | Iterable[str] = (), **options: Any) -> Any:
    """Return `f`, whose calls are watched; the attribute `seen` is what the last one did.

    Args:
        f: a function.
        names: see `watching`.
        **options: see `watching`.

    Returns:
        A function with the arguments and results of `f`. If `f` calls it, the outer call watches.

    Raises:
        TypeError: `f` is not a function.

    >>> import jax.numpy as jnp, jupyter_jaxcb as jaxcb
    >>> def f(x):
    ...     y = jnp.sin(x)
    ...     return y * 2
    >>> g = jaxcb.watch(f)
    >>> float(g(jnp.array(0.5)))
    0.9588510990142822
    >>> [series.name for series in g.seen.series]
    ['y', 'f()']
    """
    if not callable(f):
        raise TypeError(
            f"cannot watch {on_one_line(repr(f))}: it is not a function. Pass a function, as in "
            "watch(train, "
            "'loss'), or watch a block of code with watching()."
        )
    watching(names, **options)  # refuses wrong options at once
    running: set[int] = set()  # the threads, in which `f` may call what is returned here

    @functools.wraps(f)
    def watched(*args: Any, **kwargs: Any) -> Any:
        thread = threading.get_ident()
        if thread in running:
            return f(*args, **kwargs)
        with watching(names, **options) as watched.seen:  # type: ignore[attr-defined]
            running.add(thread)
            try:
                return jax.block_until_ready(f(*args, **kwargs))
            finally:
                running.discard(thread)

    watched.seen = None  # type: ignore[attr-defined]
    return watched
