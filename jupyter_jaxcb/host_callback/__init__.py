"""What `jax.experimental.host_callback` was, on JAX of today and on our own primitives.

``from jupyter_jaxcb import host_callback as hcb`` instead of
``from jax.experimental import host_callback as hcb``. JAX took it out in 0.4.35; here it does what
it did: one host call with the whole batch under vmap, primal values under differentiation, one
order common to taps, prints and calls. It is recorded and explained like every other callback,
under the flavor *tap*.

`flags` has the options that `jax.config` had, ``flags.update("jax_host_callback_inline", True)``,
and reads the same environment variables.
"""

from __future__ import annotations

import atexit
import enum
import operator
from collections.abc import Callable
from typing import Any

import jax

from ..stack import (
    CallbackException,
    HostFunction,
    barrier,
    barrier_at_exit,
    bind_tap,
    bind_tap_call,
    check_leaves,
    exact_avals,
    flags,
)
from ._print import Printer

__all__ = [
    "CallbackException",
    "CallbackFlavor",
    "TapFunctionException",
    "barrier_wait",
    "call",
    "flags",
    "id_print",
    "id_tap",
    "stop_outfeed_receiver",
]

TapFunctionException = CallbackException


def __dir__() -> list[str]:
    return __all__


class CallbackFlavor(enum.Enum):
    """Which of JAX's callbacks a tap was to be made of; any of them is accepted and means nothing.

    A tap is never dropped and never merged with another, also as PURE.
    """

    IO_CALLBACK = 1
    PURE = 2
    DEBUG = 3


def id_tap(
    tap_func: Callable[..., Any],
    arg: Any,
    *,
    result: Any = None,
    tap_with_device: bool = False,
    device_index: int = 0,
    callback_flavor: CallbackFlavor = CallbackFlavor.IO_CALLBACK,
    **kwargs: Any,
) -> Any:
    """Calls a host function with the value of `arg`, and passes the value on.

    The call is made whenever the program comes by, its result used or not, in program order with
    all other taps, prints and calls of one device. Under vmap it is one call with the whole batch;
    under differentiation it sees the primal value, in the forward pass.

    Args:
        tap_func: called as ``tap_func(arg, transforms)``, with `arg` in numpy arrays (scalars have
            no dimensions), read-only. `transforms` is a tuple of what has been done to it,
            innermost first: ``("batch", {"batch_dims": (0, None)})`` for vmap, one dimension for
            each leaf of `arg`, and ``("transpose", {})`` for a cotangent. What it returns is
            ignored.
        arg: a pytree of arrays; without any leaf a call is made too.
        result: what to return instead of `arg`: as it is.
        tap_with_device: call it with the keyword ``device`` too, a `jax.Device`. Under pmap and
            shard_map that is the one that has the slice. Elsewhere JAX lowers programs without
            knowing their device, and this names local device `device_index`.
        device_index: which device of a program over several makes the call, with the whole array.
        callback_flavor: accepted, and means nothing.
        **kwargs: ``tap_with_transform=True`` and ``tap_with_transforms=True`` are accepted, and
            mean nothing: `transforms` is passed always.

    Returns:
        `arg` as JAX arrays, or `result`.

    Raises:
        TypeError: `tap_func` is not callable, or not hashable; a leaf of `arg` or `result` is no
            array; any other keyword.
        ValueError: `device_index` is out of range.

    An exception of `tap_func` does not stop the program: it is logged, and `barrier_wait` raises a
    CallbackException of it.

    >>> import jax, numpy as np
    >>> from jupyter_jaxcb import host_callback as hcb
    >>> seen = []
    >>> f = lambda x: hcb.id_tap(lambda x, transforms: seen.append((x, transforms)), x) + 1
    >>> y = jax.vmap(f)(np.arange(3))
    >>> hcb.barrier_wait(), seen
    (None, [(array([0, 1, 2], dtype=int32), (('batch', {'batch_dims': (0,)}),))])
    """
    __tracebackhide__ = True
    for name, value in kwargs.items():
        if name not in ("tap_with_transform", "tap_with_transforms") or value is not True:
            raise TypeError(
                f"id_tap got {name}={value!r}. Support for **kwargs in ``id_tap`` is gone: bind "
                "those of the tap function, id_tap(functools.partial(tap_func, "
                f"{name}=...), arg). The transforms are its second argument, always."
            )
    return _tap(tap_func, arg, result, tap_with_device, device_index, callback_flavor, "id_tap")


def id_print(
    arg: Any,
    *,
    result: Any = None,
    tap_with_device: bool = False,
    device_index: int = 0,
    output_stream: Any = None,
    threshold: int | None = None,
    callback_flavor: CallbackFlavor = CallbackFlavor.IO_CALLBACK,
    **kwargs: Any,
) -> Any:
    """Prints the value of `arg`, and passes it on: `id_tap` with a printing function.

    Args:
        arg: as for `id_tap`.
        result: as for `id_tap`.
        tap_with_device: print the device too.
        device_index: as for `id_tap`.
        output_stream: its ``write`` gets the text; the standard output of the moment if left out.
        threshold: of `numpy.array2string`: from how many elements on an array is abbreviated.
        callback_flavor: accepted, and means nothing.
        **kwargs: printed before the value, on a line ``key: value key: value`` that is sorted by
            key, together with ``transforms`` if there are any.

    Returns:
        `arg` as JAX arrays, or `result`.

    >>> import jax, numpy as np
    >>> from jupyter_jaxcb import host_callback as hcb
    >>> y = jax.jit(lambda x: hcb.id_print(x, what="x") + 1)(np.arange(3.0)); hcb.barrier_wait()
    what: x
    [0. 1. 2.]
    """
    __tracebackhide__ = True
    printer = Printer(output_stream, threshold, kwargs)
    return _tap(printer, arg, result, tap_with_device, device_index, callback_flavor, "id_print")


def _tap(
    function: Any,
    arg: Any,
    result: Any,
    with_device: bool,
    device_index: int,
    flavor: Any,
    name: str,
) -> Any:
    __tracebackhide__ = True
    _check(function, flavor, name)
    check_leaves(arg, name)
    if result is not None:
        check_leaves(result, f"{name}, as its result,")
    index = _checked_index(device_index)
    tapped = bind_tap(HostFunction(function), arg, with_device=with_device, device_index=index)
    return tapped if result is None else result


def call(
    callback_func: Callable[..., Any],
    arg: Any,
    *,
    result_shape: Any = None,
    call_with_device: bool = False,
    device_index: int = 0,
    callback_flavor: CallbackFlavor = CallbackFlavor.IO_CALLBACK,
    result_shape_dtypes: Any = None,
) -> Any:
    """Calls a host function with the value of `arg`; returns what it answers.

    It is made whenever the program comes by, its result used or not, in order with the taps. It
    has no rule for vmap and for differentiation: loop with `jax.lax.map`, wrap it in
    `jax.custom_jvp` or `jax.custom_vjp`, or use `jupyter_jaxcb.pure`.

    Args:
        callback_func: called as ``callback_func(arg)``, with numpy arrays. It answers with exactly
            the structure, shapes and dtypes of `result_shape`; 64-bit numbers are narrowed if x64
            is off, nothing else is converted.
        arg: a pytree of arrays.
        result_shape: a pytree of numbers or of things with ``shape`` and ``dtype``; None: it
            answers with None.
        call_with_device: call it with the keyword ``device`` too, see `id_tap`.
        device_index: as for `id_tap`.
        callback_flavor: accepted, and means nothing.
        result_shape_dtypes: another name for `result_shape`.

    Returns:
        Arrays in the structure of `result_shape`.

    Raises:
        TypeError: `callback_func` is not callable, or not hashable; a leaf of `arg` is no array;
            both names of `result_shape` are given.
        ValueError: a leaf of `result_shape` is none of these; `device_index` is out of range.
        NotImplementedError: under vmap, jvp, grad or transpose.
        jax.errors.JaxRuntimeError: it raised, or answered with something else; a RuntimeError.

    >>> import jax, numpy as np
    >>> from jupyter_jaxcb import host_callback as hcb
    >>> f = jax.jit(lambda x: hcb.call(np.sin, x, result_shape=x) ** 2)
    >>> bool(np.allclose(f(np.arange(3.0)), np.sin(np.arange(3.0)) ** 2))
    True
    """
    __tracebackhide__ = True
    _check(callback_func, callback_flavor, "call")
    check_leaves(arg, "call")
    if result_shape_dtypes is not None:
        if result_shape is not None:
            raise TypeError(
                "call got result_shape and result_shape_dtypes, which are the same: pass one."
            )
        result_shape = result_shape_dtypes
    declared = exact_avals(result_shape)
    index = _checked_index(device_index)
    return bind_tap_call(
        HostFunction(callback_func),
        arg,
        declared,
        with_device=call_with_device,
        device_index=index,
    )


def barrier_wait(logging_name: str | None = None) -> None:
    """Waits until the host functions of all computations that were started have finished.

    Computations of other threads are waited for once a host function of theirs is being called: JAX
    tells no thread of another's. Inside of a host function it waits for nothing.

    Args:
        logging_name: for the log.

    Raises:
        CallbackException: a tap function raised; with its exception as the cause, and told once.
            If several did, it is the last one's; the log has all of them.
    """
    __tracebackhide__ = True
    barrier(logging_name)


def stop_outfeed_receiver() -> None:
    """Waits as `barrier_wait` does. There is no receiver; taps go on working."""
    __tracebackhide__ = True
    barrier("stop_outfeed_receiver")


def _check(function: Any, flavor: Any, name: str) -> None:
    __tracebackhide__ = True
    if not callable(function):
        raise TypeError(f"{name} calls a function, but got {function!r}. Pass it first.")
    try:
        hash(function)
    except TypeError:
        raise TypeError(
            f"{name} got {function!r}, which is not hashable: it becomes part of the program. Pass "
            "a function, or give its class a __hash__."
        ) from None
    if not isinstance(flavor, CallbackFlavor):
        raise TypeError(f"callback_flavor is a CallbackFlavor, but got {flavor!r}. Leave it out.")


def _checked_index(device_index: Any) -> int:
    __tracebackhide__ = True
    index = operator.index(device_index)
    if index and not 0 <= index < jax.local_device_count():
        raise ValueError(
            f"device_index={index} is out of range: there are {jax.local_device_count()} local "
            f"devices. Pass one of 0 to {jax.local_device_count() - 1}."
        )
    return index


flags.read_environment()
atexit.register(barrier_at_exit)
