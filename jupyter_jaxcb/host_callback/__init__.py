"""`jax.experimental.host_callback`, which JAX 0.4.35 removed, for current versions of JAX.

Write ``from jupyter_jaxcb import host_callback as hcb`` instead of
``from jax.experimental import host_callback as hcb``. It behaves as it did in JAX: one host call
with the whole batch under vmap, primal values under differentiation, and a common order of taps,
prints and calls. Its calls are recorded and explained like those of other callbacks, with the
flavor *tap*.

`flags` has the options that were in `jax.config`, as in
``flags.update("jax_host_callback_inline", True)``, and reads the same environment variables.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable
from typing import Any

import jax

from ..stack import (
    CallbackException,
    HostFunction,
    Options,
    barrier,
    barrier_at_exit,
    bind_tap,
    bind_tap_call,
    check_leaves,
    exact_avals,
    flags,
    text_of,
)
from ._print import Printer

_TAP = Options(flavor="tap", transforms=True)

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
Flags = type(flags)


def __dir__() -> list[str]:
    return __all__


class CallbackFlavor(enum.Enum):
    """The kind of JAX callback to build a tap from; accepted for compatibility, without effect.

    Even as PURE, a tap is neither removed nor deduplicated.
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
    """Call a host function with the value of `arg`, and return the value.

    The call is made whenever the program reaches it, even if its result is unused (with the two
    exceptions that `jupyter_jaxcb.tap` lists), in program order with all other taps, prints and
    calls on the device. Under vmap there is one call with the whole batch, whose batch axes are
    where the program has them: `transforms` says where. Under differentiation the call gets the
    primal value, in the forward pass.

    Args:
        tap_func: called as ``tap_func(arg, transforms)``, with read-only numpy arrays (scalars are
            0-dimensional). `transforms` is a tuple of the transformations applied, innermost first:
            ``("batch", {"batch_dims": (0, None)})`` for vmap, with a dimension for each leaf of
            `arg`, and ``("transpose", {})`` for a cotangent. Its return value is ignored.
        arg: a pytree of arrays; may be without leaves.
        result: returned unchanged instead of `arg`.
        tap_with_device: also pass the keyword argument ``device``, a `jax.Device`. Under pmap and
            shard_map this is the device of the slice. Elsewhere JAX lowers programs without knowing
            their device, and it is local device `device_index`.
        device_index: the device that makes the call, with the whole array, if there are several.
        callback_flavor: accepted, without effect.
        **kwargs: ``tap_with_transform=True`` and ``tap_with_transforms=True`` are accepted, without
            effect: `transforms` is always passed.

    Returns:
        `arg` as JAX arrays, or `result`.

    Raises:
        TypeError: `tap_func` is not callable or not hashable; a leaf of `arg` or `result` is not an
            array; an unknown keyword argument.
        ValueError: `device_index` is out of range.

    An exception in `tap_func` does not stop the program: it is logged, and `barrier_wait` raises a
    CallbackException with it as the cause.

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
                f"id_tap got {name}={value!r}. Support for **kwargs in ``id_tap`` was removed. "
                f"Write id_tap(functools.partial(tap_func, {name}=...), arg) to bind arguments of "
                "the tap function, whose second argument is always the transforms."
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
    """Print the value of `arg` and return it: `id_tap` with a printing function.

    Args:
        arg: as for `id_tap`.
        result: as for `id_tap`.
        tap_with_device: print the device too.
        device_index: as for `id_tap`.
        output_stream: its ``write`` method gets the text; by default standard output.
        threshold: arrays with more elements are abbreviated, as in `numpy.array2string`.
        callback_flavor: accepted, without effect.
        **kwargs: printed before the value on a line ``key: value key: value``, sorted by key,
            together with ``transforms`` if there are any.

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
    tapped = bind_tap(
        HostFunction(function), arg, _TAP, with_device=with_device, device_index=index
    )
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
    """Call a host function with the value of `arg`, and return its result.

    The call is made whenever the program reaches it, even if its result is unused, in order with
    the taps. It supports neither vmap nor differentiation: loop with `jax.lax.map`, wrap it in
    `jax.custom_jvp` or `jax.custom_vjp`, or use `jupyter_jaxcb.pure`.

    Args:
        callback_func: called as ``callback_func(arg)`` with numpy arrays. It must return exactly
            the structure, shapes and dtypes of `result_shape`; 64-bit numbers are narrowed if x64
            is off, and nothing else is converted.
        arg: a pytree of arrays.
        result_shape: a pytree of numbers or of objects with ``shape`` and ``dtype``; None if the
            function returns None.
        call_with_device: also pass the keyword argument ``device``, see `id_tap`.
        device_index: as for `id_tap`.
        callback_flavor: accepted, without effect.
        result_shape_dtypes: another name for `result_shape`.

    Returns:
        Arrays in the structure of `result_shape`.

    Raises:
        TypeError: `callback_func` is not callable or not hashable; a leaf of `arg` is not an array;
            both `result_shape` and `result_shape_dtypes` are given.
        ValueError: a leaf of `result_shape` has no shape or dtype; `device_index` is out of range.
        NotImplementedError: under vmap, jvp, grad or transpose.
        jax.errors.JaxRuntimeError: the function raised, or returned something else. This is a
            RuntimeError.

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
                "call got both result_shape and result_shape_dtypes, which mean the same. Pass one "
                "of them."
            )
        result_shape = result_shape_dtypes
    declared = exact_avals(result_shape)
    index = _checked_index(device_index)
    return bind_tap_call(
        HostFunction(callback_func), arg, declared, with_device=call_with_device, device_index=index
    )


def barrier_wait(logging_name: str | None = None) -> None:
    """Wait until the host functions of all dispatched computations have finished.

    Computations of other threads are included only once they call a host function, because JAX
    does not report them before. Inside a host function it returns at once.

    Args:
        logging_name: a name for the log.

    Raises:
        CallbackException: a tap function raised; its exception is the cause, and is raised only
            once. If several raised, the last one is the cause, and the log has all of them.
    """
    __tracebackhide__ = True
    barrier(logging_name)


def stop_outfeed_receiver() -> None:
    """As `barrier_wait`; there is no receiver, and taps continue to work."""
    __tracebackhide__ = True
    barrier("stop_outfeed_receiver")


def _check(function: Any, flavor: Any, name: str) -> None:
    __tracebackhide__ = True
    if not callable(function):
        raise TypeError(f"{name} needs a function as its first argument, not {text_of(function)}.")
    try:
        hash(function)
    except TypeError:
        raise TypeError(
            f"{name} got {text_of(function)}, which is not hashable, but JAX programs need a "
            "hashable "
            "function. Pass a function, or give its class a __hash__."
        ) from None
    if not isinstance(flavor, CallbackFlavor):
        raise TypeError(f"callback_flavor must be a CallbackFlavor, not {flavor!r}. Remove it.")


def _checked_index(device_index: Any) -> int:
    __tracebackhide__ = True
    index = operator.index(device_index)
    if index and not 0 <= index < jax.local_device_count():
        raise ValueError(
            f"device_index={index} is out of range: there are {jax.local_device_count()} local "
            f"devices. Pass an index from 0 to {jax.local_device_count() - 1}."
        )
    return index


flags.read_environment()
barrier_at_exit()
