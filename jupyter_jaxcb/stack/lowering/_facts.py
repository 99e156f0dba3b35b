"""Build the `LoweredSite` of a bind, for a program or for an eager call."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from ... import jax_compat
from ...recording import Aval, LoweredSite, Note, VmapLevel, calls_each_time
from .. import elision
from ..call import ArrayNames, Bind, HostCallback, to_aval
from ..elision import HostCallIndex
from ..trace import listener

_NO_MARKS: Mapping[str, Any] = {}
_Marks = Callable[[], Mapping[str, Any]]
_facts: weakref.WeakValueDictionary[tuple, LoweredSite] = weakref.WeakValueDictionary()


def note_lowered(ctx: Any, bind: Bind, levels: tuple[VmapLevel, ...], **known: Any) -> LoweredSite:
    """Record that a call site is lowered into a program; see `lowering` for the arguments."""
    lowered = lowering(ctx, bind, levels, **known)()
    recorder = listener()
    if recorder is not None:
        recorder.lowered(lowered)
    return lowered


def lowering(
    ctx: Any,
    bind: Bind,
    levels: tuple[VmapLevel, ...],
    *,
    times: int,
    gathered: bool,
    note: Note | None = None,
    version: int = 1,
    names: ArrayNames | None = None,
    marks: _Marks = dict,
    of_jax: bool = False,
    noted: bool = False,
) -> Callable[[], LoweredSite]:
    """Note that a call site is lowered into a program; return a function that makes its facts.

    Args:
        ctx: JAX's lowering context.
        bind: the bind that is lowered.
        levels: the vmap levels around the bind.
        times: the number of devices of this process that make the call.
        gathered: whether the operands are gathered from several devices.
        note: a note about its calls.
        version: the version of the host function's body.
        names: names its operands and results; None if they have no names.
        marks: returns further fields of its facts, see `HostCallback.facts`.
        of_jax: whether it is a callback of JAX's own API.
        noted: whether it is one that is not recorded.
    """
    module = ctx.module_context
    attributes, platform = module.module.operation.attributes, module.platforms[0]
    name = attributes["sym_name"].value if "sym_name" in attributes else "unnamed"
    index = len(module.host_callbacks)
    elements = 1 if of_jax else calls_each_time(levels)
    program = elision.lowered(
        bind, name, platform, HostCallIndex(index, elements, times), note, noted=noted
    )
    shards, devices = jax_compat.shard_count(ctx), jax_compat.device_count(ctx)
    device = "".join(jax_compat.shard_devices(ctx)) if shards == 1 else ""
    operands, results = tuple(ctx.avals_in), tuple(ctx.avals_out)

    def make() -> LoweredSite:
        return LoweredSite(
            site=bind.site,
            program=program,
            index=index,
            operands=tuple(map(to_aval, operands)),
            results=tuple(map(to_aval, results)),
            levels=levels,
            version=version,
            devices=max(devices, shards),
            device=device,
            gathered_bytes=sum(map(_bytes, operands)) if gathered else 0,
            operand_names=names.operands() if names else (),
            result_names=names.results() if names else (),
            **marks(),
        )

    return make


def note_call(
    ctx: Any, callback: HostCallback, levels: tuple[VmapLevel, ...], *, times: int, gathered: bool
) -> LoweredSite:
    """Record that `callback` is lowered, with what capabilities say of its calls."""
    return note_lowered(
        ctx, callback.bind, levels, times=times, gathered=gathered, version=callback.host.version,
        note=callback.note(ctx.module_context.platforms[0], levels),
        names=ArrayNames.of(callback), marks=callback.facts,
    )  # fmt: skip


def _bytes(aval: Any) -> int:
    return aval.size * getattr(aval.dtype, "itemsize", 8)


def eager_fact(
    bind: Bind,
    operands: tuple[Aval, ...],
    results: tuple[Aval, ...],
    levels: tuple[VmapLevel, ...],
    names: ArrayNames | None = None,
    marks: Mapping[str, Any] = _NO_MARKS,
) -> LoweredSite:
    """Return one `LoweredSite` for all equal eager calls, so that a loop of them is one row.

    Args:
        bind: the bind that was called.
        operands: of one host call.
        results: of one host call.
        levels: the vmaps that the bind went through.
        names: names its operands and results; None if they have no names.
        marks: further fields, see `HostCallback.facts`.
    """
    around = [size or 1 for kind, size in bind.around if kind == "vmap"]
    serves = 1 if levels else math.prod(around)
    key = (bind.site, operands, results, levels, serves, names and names[1:], *marks.items())
    fact = _facts.get(key)
    if fact is None:
        fact = LoweredSite(
            bind.site, None, -1, operands, results, levels, serves=serves,
            operand_names=names.operands() if names else (),
            result_names=names.results() if names else (), **marks,
        )  # fmt: skip
        _facts[key] = fact
    return fact
