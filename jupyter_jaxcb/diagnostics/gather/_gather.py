"""gather(): merge the recordings of all processes of a jax.distributed run."""

from __future__ import annotations

import io
import json
import os
import platform
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from typing import Any

from ... import jax_compat
from ...recording import Process, Recording, merged, read_binary, write_binary
from ._rendezvous import Rendezvous, meeting

_SECONDS = 60.0  # a process waits this long for another
_ROUNDS = 12  # of the clock comparison
_STAMP = struct.Struct("<q")
_LENGTH = struct.Struct("<I")


def gather(recording: Recording, *, timeout: float = _SECONDS) -> Recording:
    """Merge the recordings of all processes of a `jax.distributed` run.

    Every process must call it with its own recording, and gets the same merged recording, which
    can be shown, saved and loaded like any other. Each host call has its ``process``, threads are
    named ``process 1 · MainThread``, and a line that several processes run is one site, whose
    notes list the differences. Times are on the clock of process 0; `Recording.processes` has the
    offset of each clock and its largest possible error. Processes of one machine read the same
    clock; others exchange their times a dozen times.

    The data goes through the key-value store of JAX's coordination service, not through a
    computation. Call it from one thread only.

    Args:
        recording: the recording of this process.
        timeout: seconds to wait for a process that does not arrive or stops responding.

    Returns:
        The merged recording; without `jax.distributed`, `recording` itself.

    Raises:
        TimeoutError: a process did not call it in time; the message names the process. All waiting
            processes raise it; a process that arrives later joins their next call.
        TypeError: `recording` is not a `Recording`; pass ``r.recording`` of a `record` block.
        ValueError: `recording` is already gathered, or `timeout` is not a number above 0.

    >>> import jax, numpy as np, jupyter_jaxcb as jaxcb
    >>> double = jaxcb.pure(lambda x: 2 * x, result=lambda x: x)
    >>> with jaxcb.record() as r:
    ...     y = jax.vmap(double)(np.arange(3))
    >>> jaxcb.gather(r.recording)  # in every process, if there are several
    <Recording of 3 host calls from 1 site>
    """
    index, count = jax_compat.process_number()
    if count == 1:
        _check(recording, timeout)
        return recording
    return _of_all(recording, timeout, index, count)


def _of_all(recording: Recording, timeout: float, index: int, count: int) -> Recording:
    jax_compat.start_backends()
    with meeting(index, count, timeout if _is_time(timeout) else _SECONDS) as others:
        _check(recording, timeout)
        found = _exchanged(recording, others, index, count)
    return merged([one for _, one in found], _processes([about for about, _ in found]))


def _is_time(timeout: Any) -> bool:
    return isinstance(timeout, int | float) and timeout > 0


def _check(recording: Any, timeout: float) -> None:
    if not isinstance(recording, Recording):
        raise TypeError(
            f"cannot gather {type(recording).__name__} {recording!r}: it is not a recording. "
            "Write jaxcb.gather(r.recording) after `with jaxcb.record() as r`."
        )
    if recording.processes:
        raise ValueError(
            f"cannot gather a recording of {len(recording.processes)} processes: it is already "
            "gathered. Pass the recording of this process alone."
        )
    if not _is_time(timeout):
        raise ValueError(
            f"timeout={timeout!r} is not a number above 0. Pass seconds, as in timeout=60."
        )


def _exchanged(
    recording: Recording, others: Rendezvous, index: int, count: int
) -> list[tuple[dict[str, Any], Recording]]:
    """Exchange recordings; return facts about each process and its recording."""
    clocks = _compare_clocks(others, index, count)
    others.post("data", _packed(recording, clocks))
    return [_unpacked(others.read("data", process)) for process in range(count)]


def _compare_clocks(others: Rendezvous, index: int, count: int) -> dict[str, Any]:
    """Return this process's bounds on the clock differences.

    Each process posts its time and then reads that of the other, which was posted before that
    moment. If ``offset`` is added to the times of process p to get those of process 0, process p
    knows that ``posted by 0 <= read by p + offset``, and process 0 that
    ``posted by p + offset <= read by 0``.
    """
    peers = list(range(1, count)) if index == 0 else [0]
    bounds: dict[int, int] = {}  # by process: smallest delay from its post to our read
    for number in range(_ROUNDS):
        name = f"clock{number}"
        others.post(name, _STAMP.pack(time.perf_counter_ns()))
        for peer in peers:
            (posted,) = _STAMP.unpack(others.read(name, peer))
            delay = time.perf_counter_ns() - posted
            bounds[peer] = min(delay, bounds.get(peer, delay))
    if index == 0:
        return {"most": [0, *(bounds[peer] for peer in peers)]}
    return {"least": -bounds[0]}


def _packed(recording: Recording, clocks: Mapping[str, Any]) -> bytes:
    about = {"host": socket.gethostname(), "pid": os.getpid(), "clock": clock_name(), **clocks}
    head = json.dumps(about).encode()
    body = io.BytesIO()
    write_binary(recording, body)
    return b"".join([_LENGTH.pack(len(head)), head, body.getvalue()])


def _unpacked(data: bytes) -> tuple[dict[str, Any], Recording]:
    (length,) = _LENGTH.unpack_from(data)
    start = _LENGTH.size + length
    about = json.loads(data[_LENGTH.size : start])
    # No limit: the data comes from processes of the same run.
    fields = read_binary(io.BytesIO(data[start:]), limit_bytes=1 << 62)
    return about, Recording(**fields)


def _processes(abouts: Sequence[Mapping[str, Any]]) -> list[Process]:
    found = []
    for index, about in enumerate(abouts):
        offset = error = 0
        if about["clock"] != abouts[0]["clock"]:
            least, most = about["least"], abouts[0]["most"][index]
            offset, error = (least + most) // 2, (most - least + 1) // 2
        found.append(Process(index, about["host"], about["pid"], offset, error))
    return found


def clock_name() -> str:
    """Return a name that is equal in processes whose `time.perf_counter_ns` read the same clock."""
    if platform.system() != "Linux":
        return f"{socket.gethostname()}, process {os.getpid()}"
    # The monotonic clock counts from the boot of the machine; time namespaces may shift it.
    with open("/proc/sys/kernel/random/boot_id") as file:
        started = file.read().strip()
    try:
        return f"{started}, {os.readlink('/proc/self/ns/time')}"
    except OSError:  # before Linux 5.6
        return started
