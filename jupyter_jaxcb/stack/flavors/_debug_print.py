"""debug_print: a debug callback that formats and prints."""

from __future__ import annotations

import string
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from jax.tree_util import tree_map

from ..call import HostFunction
from ..options import checked
from ._debug import bind_debug


class _Checker(string.Formatter):
    """Check a format string against its arguments without formatting anything."""

    def format_field(self, value: Any, format_spec: str) -> str:
        return ""

    def check_unused_args(self, used_args: Any, args: Any, kwargs: Any) -> None:
        __tracebackhide__ = True
        unused = [argument for i, argument in enumerate(args) if i not in used_args]
        if unused:
            raise ValueError(f"Unused positional arguments to `jax.debug.print`: {unused}")
        names = [name for name in kwargs if name not in used_args]
        if names:
            raise ValueError(
                f"Unused keyword arguments to `jax.debug.print`: {names}. You may be passing an "
                'f-string, which formats before JAX has values: write debug_print("{x}", x=x), '
                'not debug_print(f"{x}").'
            )


class _Shown(np.ndarray):
    """An array with the repr of a JAX array, used inside structures and for ``!r``."""

    def __format__(self, spec: str) -> str:
        return format(self.view(np.ndarray), spec)  # its errors name NumPy's class

    def __repr__(self) -> str:
        dtype, width = f"dtype={self.dtype.name}", np.get_printoptions()["linewidth"]
        text = f"[], shape={self.shape}"
        if self.size:
            text = np.array2string(
                self.view(np.ndarray), width, separator=", ", prefix="Array(", suffix=","
            )
        fits = len(text.rpartition("\n")[2]) + len(dtype) + 4 <= width
        return f"Array({text},{' ' if fits else ' ' * 6}{dtype})"


def _shown(leaf: Any) -> Any:
    return leaf.view(_Shown) if isinstance(leaf, np.ndarray) else leaf


class _Print:
    """The host function of one debug_print; equal if format string and print options are equal."""

    __name__ = "debug_print"

    def __init__(self, fmt: str) -> None:
        self.fmt = fmt
        self.options = tuple(np.get_printoptions().items())  # those in force at the call
        self.has_fields = any(field is not None for _, field, _, _ in string.Formatter().parse(fmt))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Print) and self.fmt == other.fmt and self.options == other.options

    def __hash__(self) -> int:
        return hash(self.fmt)

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        args, kwargs = tree_map(_shown, (args, kwargs))
        options: dict[str, Any] = dict(self.options)
        if self.has_fields:
            with np.printoptions(**options):
                text = self.fmt.format(*args, **kwargs)
        else:
            text = " ".join((self.fmt, *map(str, args)))
        sys.stdout.write(text + "\n")  # looked up at call time: the kernel may replace sys.stdout


def debug_print(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    vmap_method: str | None = "sequential",
    queued: bool = False,
    on_full: str = "wait",
    rematerialize: bool = True,
    **kwargs: Any,
) -> Callable[..., None] | None:
    """Print values from a compiled program; the signature is that of `jax.debug.print`.

    There are two forms: ``debug_print("{x}", x=x, ordered=True)``, and
    ``debug_print(ordered=True)("{x}", x=x)``, which leaves every keyword to the format string.

    Args:
        fmt: a format string as for `str.format`; not an f-string, which would be formatted before
            JAX has values.
        *args: values of the positional fields.
        ordered: keep program order among all ordered debug callbacks, on one device only.
        partitioned: under jit over several devices, print each device's shard.
        skip_format_check: do not check `fmt` against the arguments.
        vmap_method: ``"expand_dims"`` prints a whole batch at once, see `jupyter_jaxcb.debug`.
        queued: print in the background, see `jupyter_jaxcb.debug`.
        on_full: ``"wait"`` or ``"drop"``, see `jupyter_jaxcb.debug`.
        rematerialize: whether `jax.checkpoint` prints again where it recomputes, as JAX does.
        **kwargs: values of the named fields.

    Returns:
        None; in the second form without `fmt`, a function that takes it.

    Raises:
        ValueError: if `fmt` does not use one of the arguments. Like `IndexError` and `KeyError`,
            it is raised while JAX traces, not when the program runs.
        IndexError: if a positional field has no argument.
        KeyError: if a named field has no argument.
        TypeError: if the options' call of the second form has arguments too.

    >>> import jax, numpy as np, jupyter_jaxcb as jaxcb
    >>> f = jax.jit(lambda x: jaxcb.debug_print("x = {x}", x=x))
    >>> f(np.float32(2)), jax.effects_barrier()
    x = 2.0
    (None, None)
    """
    __tracebackhide__ = True
    options = checked(
        "debug", drop_in=True, vmap_method=vmap_method, ordered=ordered, partitioned=partitioned,
        queued=queued, on_full=on_full, rematerialize=rematerialize,
    )  # fmt: skip

    def bind(fmt: str, *args: Any, **kwargs: Any) -> None:
        if not skip_format_check:
            _Checker().format(fmt, *args, **kwargs)
        bind_debug(HostFunction(_Print(fmt)), args, kwargs, options)

    if fmt is not None:
        bind(fmt, *args, **kwargs)
        return None
    if args or kwargs:
        raise TypeError(
            f"debug_print received unexpected arguments in the two-call form: {args=} {kwargs=}"
        )
    return bind
