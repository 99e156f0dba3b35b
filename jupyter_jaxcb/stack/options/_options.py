"""The table of options: each is a field of `Options`, with a row that says the rest."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ...recording import VMAP_METHODS, on_one_line
from ._capability import Capability, capabilities_of

_OTHERS = [name for name in VMAP_METHODS if name != "sequential"]

FLAVORS = ("pure", "io", "debug", "buffer", "tap")


class Row(NamedTuple):
    """What there is to know about an option besides its name and type.

    Attributes:
        default: its default.
        flavors: the flavors whose decorators take it as a keyword.
        help: what it does, in one line, for the help of the magic; empty if the magic lacks it.
        kind: how the magic reads it: as ``"text"``, as a ``"flag"`` without a value (``--no-...``
            if the default is True), as an ``"integer"``, as a ``"number"``, or as the name of a
            ``"variable"`` that may hold it.
        needs: another option without which it has no meaning.
        why: what it needs that one for.
    """

    default: Any
    flavors: tuple[str, ...]
    help: str = ""
    kind: str = "text"
    needs: str = ""
    why: str = ""


def _row(default: Any, flavors: str, *about: Any, compare: bool = True, **more: Any) -> Any:
    row = Row(default, tuple(flavors.split()), *about, **more)
    return dataclasses.field(default=default, compare=compare, metadata={"row": row})


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Options:
    """The options of one callback, under the names that users type; compared by value.

    An option that the flavor does not take has its default.

    Attributes:
        flavor: the name of the flavor.
    """

    flavor: str
    vmap_method: str | None = _row(
        "sequential", "pure io debug buffer",
        "how to batch it under vmap: sequential (the default, always correct), "
        f"{', '.join(_OTHERS[:-1])} or {_OTHERS[-1]}",
    )  # fmt: skip
    ordered: bool = _row(False, "io debug", "keep program order", "flag")
    partitioned: bool | tuple[str, ...] = _row(False, "pure io debug")
    sharding: Any = _row(None, "pure io")  # noqa: RUF009
    arrays: str = _row(
        "numpy", "pure io debug", "arrays passed to the functions: numpy (the default) or jax"
    )
    derivative: str | None = _row(  # compiled programs do not depend on it
        None, "pure", "finite, to differentiate by central differences", compare=False
    )
    gradient: str | None = _row(
        None, "pure", "the parameters by which it returns its gradient, beside its value: theta"
    )
    linear: str | None = _row(
        None, "pure buffer", "the parameters in which it is linear, jointly: b, or b,c"
    )
    linear_self_adjoint: bool = _row(
        False, "pure buffer",
        "with --linear, it is its own adjoint: a symmetric or Hermitian operator", "flag",
        needs="linear", why="without it, derivatives do not use an adjoint",
    )  # fmt: skip
    has_side_effect: bool = _row(False, "buffer", "call it as often as the program says", "flag")
    queued: bool = _row(
        False, "io debug", "do not wait for the calls: a background thread makes them in order",
        "flag",
    )  # fmt: skip
    on_full: str = _row(
        "wait", "io debug", "with --queued, if the queue is full: wait (the default) or drop",
        needs="queued", why="without it, no call waits in a queue",
    )  # fmt: skip
    check: bool = _row(False, "buffer", "raise if it leaves output unwritten", "flag")
    cast: bool = _row(False, "pure io", "allow lossy conversion of results", "flag")
    executor: Any = _row(  # noqa: RUF009 (compared by identity)
        None, "pure io",
        "run the calls of a vmap in parallel: threads, processes, dask or ipyparallel, with a "
        "number of workers as in threads:8 or an address as in dask:tcp://host:8786; or a "
        "variable that holds an executor, client or view",
        "variable", compare=False,
    )  # fmt: skip
    chunksize: int | None = _row(
        None, "pure io", "number of batch elements sent to the executor together", "integer",
        needs="executor", why="without one, each batch element is called on XLA's own thread",
    )  # fmt: skip
    timeout: float | None = _row(
        None, "pure io", "seconds that a chunk may take in the executor", "number",
        needs="executor",
        why="without one, the call runs on XLA's own thread and cannot be abandoned",
    )  # fmt: skip
    compile: str | None = _row(None, "pure io buffer", "numba, to compile the functions")
    rematerialize: bool = _row(
        True, "pure io debug buffer tap",
        "save the results in a jax.checkpoint: its backward pass does not call again", "flag",
    )  # fmt: skip
    # Of `buffer_callback` alone:
    input_output_aliases: tuple[tuple[int, int], ...] = _row((), "")
    command_buffer_compatible: bool = _row(False, "")
    # Not typed: whether the function of a tap has a second parameter; and if the last operand of a
    # call is a mask, whose, in words: "where", "rule" (a derivative rule of a masked call makes the
    # call) and "text" (of a branch or loop around it).
    transforms: bool = _row(False, "tap")
    masked: str = _row("", "")
    # Not typed: whether a function with the signature of JAX's makes the call.
    drop_in: bool = _row(False, "")

    @property
    def may_repeat(self) -> bool:
        """Whether another call with the same arguments changes nothing."""
        return self.flavor == "pure" or (self.flavor == "buffer" and not self.has_side_effect)

    @functools.cached_property
    def capabilities(self) -> tuple[Capability, ...]:
        """What applies to the callback, looked up when it is first needed."""
        return capabilities_of(self)

    def look_at(self, function: Any, *, registered: bool = False) -> None:
        """Let capabilities warn about the function of a callback, see `Capability.look`."""
        __tracebackhide__ = True
        for row in self.capabilities:
            if row.look is not None:
                row.look(function, self, registered)

    @functools.cached_property
    def with_mask(self) -> Options:
        """The options of the calls that have the mask of ``.where``."""
        return self._masked_by("where")

    @functools.cached_property
    def with_mask_of_rule(self) -> Options:
        """The options of the calls that have the mask of a derivative rule, too."""
        return self._masked_by("rule")

    @functools.cached_property
    def with_mask_of_text(self) -> Options:
        """The options of the calls that have the mask of a branch or loop around them, too."""
        return self._masked_by("text")

    def _masked_by(self, mask: str) -> Options:
        return dataclasses.replace(self, masked=" ".join(sorted({*self.masked.split(), mask})))

    def with_operands_of(self, other: Options) -> Options:
        """Return the options of calls with the operands that those of `other` have at their end."""
        return self.with_mask if other.masked else self

    def given(self, name: str) -> bool:
        """Return whether an option has another value than its default."""
        value, row = getattr(self, name), ROWS[name]
        if value is row.default:
            return False
        if row.default is True:
            return not isinstance(value, bool | np.bool_) or not value
        if row.default is False:  # "" and () are no way to say False where names may be
            return bool(value) or (row.kind != "flag" and isinstance(value, str | tuple | list))
        return value is not row.default and not (
            type(value) is type(row.default) and value == row.default
        )

    def settings(self) -> dict[str, Any]:
        """Return the options of the flavor by name, without those that lack what they need."""
        return {
            name: getattr(self, name)
            for name, row in ROWS.items()
            if self.flavor in row.flavors and (not row.needs or self.given(row.needs))
        }

    def words(self) -> str:
        """Return the options that differ from the default: ``vmap_method=sequential, ordered``."""
        return ", ".join(
            name if value is True else f"{name}={value_word(name, value, plain=True)}"
            for name, value in self.settings().items()
            if value is not ROWS[name].default and self.given(name)
        )

    def spelled(self, name: str) -> str:
        """Return an option as the user typed it: ``executor='threads'``."""
        return f"{name}={value_word(name, getattr(self, name))}"

    @functools.cached_property
    def _key(self) -> tuple[Any, ...]:
        executor = self.executor if isinstance(self.executor, str) else id(self.executor)
        values = [getattr(self, f.name) for f in dataclasses.fields(self) if f.compare]
        return executor, *values

    @functools.cached_property
    def _hash(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Options) and self._key == other._key)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"{self.flavor}({self.words()})"


ROWS: dict[str, Row] = {
    field.name: field.metadata["row"] for field in dataclasses.fields(Options)[1:]
}


def rows(flavor: str = "") -> Iterator[tuple[str, Row]]:
    """Yield the name and the row of each option, or of those that one flavor takes."""
    return ((name, row) for name, row in ROWS.items() if not flavor or flavor in row.flavors)


def value_word(name: str, value: Any, *, plain: bool = False) -> str:
    """Return a value for messages: ``'threads'``, or ``<Client>`` for an object of class Client.

    Args:
        name: the name of the option.
        value: its value.
        plain: whether text has no quotes.
    """
    if isinstance(value, str):
        return value if plain else repr(value)
    return on_one_line(f"<{type(value).__name__}>" if name == "executor" else repr(value))
