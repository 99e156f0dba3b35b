"""What taps and calls of host_callback have in common: one ordered effect, and how they are run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import jax
import numpy as np

from ....recording import LoweredSite
from ... import jax_compat
from ...core import HostCallback, Static
from ...dispatch import Build, Crossing, build_crossing
from ...errors import HostCallError
from .. import raise_itself, raise_runtime_error
from ._barrier import keeping_errors
from ._flags import flags


class TapEffect(jax_compat.Effect):
    """Keeps taps, prints and calls of host_callback alive, and in one order."""

    def __str__(self) -> str:
        return "Tap"


TAP = TapEffect()
jax_compat.keep_and_order(TapEffect)


def wait_for_earlier_taps() -> None:
    """Eager calls come after those of programs that were started before; their errors wait."""
    with keeping_errors():
        jax_compat.wait_for_ordered(TAP)


def raise_as_flagged(error: HostCallError) -> NoReturn:
    """Raises what an eager call raises, by ``jax_host_callback_inline``."""
    __tracebackhide__ = True
    (raise_itself if flags.jax_host_callback_inline else raise_runtime_error)(error)


class Placeholder:
    """Stands among the arguments of a bind for what is known later: transforms, the device."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


TRANSFORMS = Placeholder("transforms")
DEVICE = Placeholder("device")


def building(
    around: Callable[[Crossing], Crossing],
    device_index: int,
    transforms: tuple[Any, ...] = (),
) -> Build:
    """As `build_crossing`, with placeholders filled in.

    Args:
        around: what becomes of the crossing.
        device_index: of the local device to name, where the program does not say which it is.
        transforms: as the host function gets them.
    """

    def build(callback: HostCallback, lowered: LoweredSite, *dtypes: Any) -> Crossing:
        values = {
            place: _device(lowered, device_index) if value is DEVICE else transforms
            for place, value in callback.static.values.items()
        }
        callback = dataclasses.replace(callback, static=Static(values))
        return around(build_crossing(callback, lowered, *dtypes))

    return build


def _device(lowered: LoweredSite, device_index: int) -> Any:
    """The device of a shard; of a program that runs on one the `device_index`-th local device.

    JAX lowers a program for one device without knowing which: what is lowered serves all of them.
    """
    for device in jax.local_devices():
        if f"{device.platform}:{device.id}" == lowered.device:
            return device
    return jax.local_devices()[device_index if lowered.shard is None else lowered.shard]


def placed(ctx: Any, device_index: int) -> int | None:
    """Which device of the program makes a call for all; None where each makes its own.

    Raises:
        ValueError: the program has fewer devices.
    """
    __tracebackhide__ = True
    count = jax_compat.device_count(ctx)
    if count > 1 and device_index >= count:
        raise ValueError(
            f"device_index={device_index} is out of range: the program runs on {count} devices. "
            f"Pass one of 0 to {count - 1}."
        )
    return device_index if count > 1 else None


def recomputing(primitive: jax_compat.Primitive) -> Callable[..., Any]:
    """The rule for `jax.checkpoint`: in the forward pass, the backward pass or both.

    It returns what JAX asks for: the equation for the known side, the one for the staged side,
    which outputs are unknown and instantiated, and the residuals.
    """

    def rule(
        saveable: Any, unknown: Sequence[bool], instantiated: Sequence[bool], eqn: Any
    ) -> tuple[Any, Any, list[bool], list[bool], list[Any]]:
        count = len(eqn.outvars)
        residuals = [v for v, on in zip(eqn.invars, instantiated, strict=True) if not on]
        if any(unknown):
            return None, eqn, [True] * count, [True] * count, residuals
        if _is_saved(saveable(primitive, *[v.aval for v in eqn.invars], **eqn.params)):
            return eqn, None, [False] * count, [False] * count, []
        return eqn, eqn, [False] * count, [True] * count, residuals

    return rule


def _is_saved(answer: Any) -> bool:
    """What a policy says: a boolean, or one of JAX's words for it."""
    if isinstance(answer, (bool, np.bool_)):
        return bool(answer)
    return type(answer).__name__ == "SaveableType"
