"""The ordered effect that taps and calls of host_callback share, and how their crossings run."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NoReturn

import jax
import numpy as np

from .... import jax_compat
from ....recording import LoweredSite
from ...call import Static
from ...dispatch import Build, CallPlan, Crossing, crossing
from ...errors import HostCallError
from ...options import Options
from .. import Flavor, raise_itself, raise_runtime_error
from ._barrier import counted, keeping_errors
from ._flags import flags


class TapEffect(jax_compat.Effect):
    """Keeps all taps, prints and calls of host_callback, in one order."""

    def __str__(self) -> str:
        return "Tap"


TAP = TapEffect()
jax_compat.keep_and_order(TapEffect)


class Placeholder:
    """An argument of a bind whose value is known only at lowering: transforms, the device."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


TRANSFORMS = Placeholder("transforms")
DEVICE = Placeholder("device")


class InOrder(Flavor):
    """A flavor whose calls are in the order of all taps, and counted for the barrier."""

    postpones = False
    takes_masks = False

    def effects(self, options: Options) -> set[jax_compat.Effect]:
        """Return the effect of taps."""
        return {TAP}

    def order(self, options: Options) -> jax_compat.Effect:
        """Return the effect of taps."""
        return TAP

    def wait(self, options: Options) -> None:
        """Wait for the taps of programs that were started before; postpone errors."""
        with keeping_errors():
            jax_compat.wait_for_ordered(TAP)

    @staticmethod
    def fail(error: HostCallError) -> NoReturn:
        """Raise the error of an eager call in the form that ``jax_host_callback_inline`` says."""
        __tracebackhide__ = True
        (raise_itself if flags.jax_host_callback_inline else raise_runtime_error)(error)

    def build(
        self,
        *,
        is_eager: bool,
        device_index: int = 0,
        transforms: tuple[tuple[str, Any], ...] = (),
        **params: Any,
    ) -> Build:
        """Return a `crossing` that fills in placeholders.

        Args:
            is_eager: whether it is an eager call.
            device_index: the index of the local device to pass, if the program does not determine
                it.
            transforms: the transforms to pass.
            **params: further parameters of a tap.
        """
        passed = tuple(
            (name, {} if dims is None else {"batch_dims": dims}) for name, dims in transforms
        )
        at_once = flags.raise_at_once or (is_eager and flags.jax_host_callback_inline)

        def build(plan: CallPlan) -> Crossing:
            values = {
                place: _device(plan.lowered, device_index) if value is DEVICE else passed
                for place, value in plan.callback.static.values.items()
            }
            callback = dataclasses.replace(plan.callback, static=Static(values))
            cross = crossing(dataclasses.replace(plan, callback=callback))
            return counted(cross, postpone=self.postpones and not at_once)

        return build

    def device(self, ctx: Any, *, device_index: int = 0, **params: Any) -> int | None:
        """Return the index of the device that makes a call for all; None on a single device.

        Raises:
            ValueError: if the program has no device with this index.
        """
        __tracebackhide__ = True
        count = jax_compat.device_count(ctx)
        if count > 1 and device_index >= count:
            raise ValueError(
                f"device_index={device_index} is out of range: the program runs on {count} "
                f"devices. Pass one of 0 to {count - 1}."
            )
        return device_index if count > 1 else None

    def partial_eval(
        self, saveable: Any, unknown: Sequence[bool], instantiated: Sequence[bool], eqn: Any
    ) -> tuple[Any, Any, list[bool], list[bool], list[Any]]:
        """Call in the forward pass of a `jax.checkpoint`, the backward pass or both.

        Returns:
            As JAX expects: the equation for the known side, the one for the staged side, which
            outputs are unknown and instantiated, and the residuals.
        """
        count = len(eqn.outvars)
        residuals = [v for v, on in zip(eqn.invars, instantiated, strict=True) if not on]
        if any(unknown):
            return None, eqn, [True] * count, [True] * count, residuals
        if _is_saved(saveable(self.primitive, *[v.aval for v in eqn.invars], **eqn.params)):
            return eqn, None, [False] * count, [False] * count, []
        return eqn, eqn, [False] * count, [True] * count, residuals


def _device(lowered: LoweredSite, device_index: int) -> Any:
    """Return the device of a shard, or the `device_index`-th local device.

    JAX lowers a program for a single device without choosing one, so that it can run on any.
    """
    for device in jax.local_devices():
        if f"{device.platform}:{device.id}" == lowered.device:
            return device
    return jax.local_devices()[device_index if lowered.shard is None else lowered.shard]


def _is_saved(decision: Any) -> bool:
    """Return whether the decision of a policy, a boolean or a marker of JAX, is to save."""
    if isinstance(decision, (bool, np.bool_)):
        return bool(decision)
    return type(decision).__name__ == "SaveableType"
