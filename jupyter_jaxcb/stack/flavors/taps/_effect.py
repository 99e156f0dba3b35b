"""The ordered effect that taps and calls of host_callback share, and how their crossings run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import jax
import numpy as np

from .... import jax_compat
from ....recording import LoweredSite
from ...call import Static
from ...dispatch import Build, CallPlan, Crossing, crossing
from ...errors import HostCallError
from .. import raise_itself, raise_runtime_error
from ._barrier import keeping_errors
from ._flags import flags


class TapEffect(jax_compat.Effect):
    """Keeps all taps, prints and calls of host_callback, in one order."""

    def __str__(self) -> str:
        return "Tap"


TAP = TapEffect()
jax_compat.keep_and_order(TapEffect)


def wait_for_earlier_taps() -> None:
    """Wait for the taps of programs that were started before an eager call; postpone errors."""
    with keeping_errors():
        jax_compat.wait_for_ordered(TAP)


def raise_as_flagged(error: HostCallError) -> NoReturn:
    """Raise the error of an eager call in the form that ``jax_host_callback_inline`` asks for."""
    __tracebackhide__ = True
    (raise_itself if flags.jax_host_callback_inline else raise_runtime_error)(error)


class Placeholder:
    """An argument of a bind whose value is known only at lowering: transforms, the device."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


TRANSFORMS = Placeholder("transforms")
DEVICE = Placeholder("device")


def building(
    around: Callable[[Crossing], Crossing], device_index: int, transforms: tuple[Any, ...] = ()
) -> Build:
    """Return a `crossing` that fills in placeholders.

    Args:
        around: wraps the crossing.
        device_index: the index of the local device to pass, if the program does not determine it.
        transforms: the transforms to pass.
    """

    def build(plan: CallPlan) -> Crossing:
        values = {
            place: _device(plan.lowered, device_index) if value is DEVICE else transforms
            for place, value in plan.callback.static.values.items()
        }
        callback = dataclasses.replace(plan.callback, static=Static(values))
        return around(crossing(dataclasses.replace(plan, callback=callback)))

    return build


def _device(lowered: LoweredSite, device_index: int) -> Any:
    """Return the device of a shard, or the `device_index`-th local device.

    JAX lowers a program for a single device without choosing one, so that it can run on any.
    """
    for device in jax.local_devices():
        if f"{device.platform}:{device.id}" == lowered.device:
            return device
    return jax.local_devices()[device_index if lowered.shard is None else lowered.shard]


def placed(ctx: Any, device_index: int) -> int | None:
    """Return the index of the device that makes a call for all; None on a single device.

    Raises:
        ValueError: if the program has no device with this index.
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
    """Return the rule for `jax.checkpoint`: call in the forward pass, the backward pass or both.

    The rule returns, as JAX expects: the equation for the known side, the one for the staged side,
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


def _is_saved(decision: Any) -> bool:
    """Return whether the decision of a policy, a boolean or a marker of JAX, is to save."""
    if isinstance(decision, (bool, np.bool_)):
        return bool(decision)
    return type(decision).__name__ == "SaveableType"
