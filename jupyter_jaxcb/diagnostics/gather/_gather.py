"""gather(): the recordings of all processes of a jax.distributed run, as one."""

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

from ...recording import Process, Recording, merged, read_binary, write_binary
from ...stack import jax_compat
from ._rendezvous import Rendezvous, meeting

_SECONDS = 60.0  # that a process waits for another
_ROUNDS = 12  # in which clocks are compared
_STAMP = struct.Struct("<q")
_LENGTH = struct.Struct("<I")


def gather(recording: Recording, *, timeout: float = _SECONDS) -> Recording:
    """The recordings of all processes of a `jax.distributed` run, merged into one.

    Every process calls it, with what it recorded itself, and gets the same: a recording as any
    other, which can be shown, saved and loaded. A host call says its ``process``, threads are named
    ``process 1 · MainThread``, a line that several processes run is one site, and its notes say
    what was different in which. Times are those of process 0's clock; `Recording.processes` has
    what was added to those of the others, and how far off that is at most: processes of one machine
    read one clock; others exchange the time of day of theirs a dozen times.

    It goes by the key-value store of JAX's coordination service, not by a computation. Call it from
    one thread.

    Args:
        recording: what this process recorded.
        timeout: seconds to wait for a process that has not come, or does not go on.

    Returns:
        The recording of all; without `jax.distributed`, `recording` itself.

    Raises:
        TimeoutError: a process did not call it in time; the message names it. Others that wait
            raise it too; one that comes later meets those who try again.
        TypeError: `recording` is none; pass ``r.recording`` where ``r`` is what `record` gave.
        ValueError: `recording` was gathered already, or `timeout` is no number above 0.

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
            f"cannot gather {type(recording).__name__} {recording!r}: pass a recording, as in "
            "jaxcb.gather(r.recording) after `with jaxcb.record() as r`."
        )
    if recording.processes:
        raise ValueError(
            f"cannot gather a recording of {len(recording.processes)} processes: it was gathered "
            "already. Pass what this process recorded by itself."
        )
    if not _is_time(timeout):
        raise ValueError(f"timeout={timeout!r} has to be a number above 0, in seconds: timeout=60.")


def _exchanged(
    recording: Recording, others: Rendezvous, index: int, count: int
) -> list[tuple[dict[str, Any], Recording]]:
    """What each process recorded, and what there is to know of it."""
    clocks = _compare_clocks(others, index, count)
    others.post("data", _packed(recording, clocks))
    return [_unpacked(others.read("data", process)) for process in range(count)]


def _compare_clocks(others: Rendezvous, index: int, count: int) -> dict[str, Any]:
    """Bounds on how far clocks are apart, as this process knows them.

    Each one tells its time and then reads the other's: what it reads was told before that moment.
    With ``offset`` what has to be added to a process's times to get those of process 0, process p
    knows that ``told by 0 <= read by p + offset``, and process 0 that
    ``told by p + offset <= read by 0``.
    """
    peers = list(range(1, count)) if index == 0 else [0]
    bounds: dict[int, int] = {}  # by process: the least that its reading was later than our telling
    for number in range(_ROUNDS):
        name = f"clock{number}"
        others.post(name, _STAMP.pack(time.perf_counter_ns()))
        for peer in peers:
            (told,) = _STAMP.unpack(others.read(name, peer))
            late = time.perf_counter_ns() - told
            bounds[peer] = min(late, bounds.get(peer, late))
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
    # Our own processes: as large as they made it.
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
    """The same in processes whose `time.perf_counter_ns` count from one moment."""
    if platform.system() != "Linux":
        return f"{socket.gethostname()}, process {os.getpid()}"
    # The monotonic clock counts from the start of a machine; containers may shift it.
    with open("/proc/sys/kernel/random/boot_id") as file:
        started = file.read().strip()
    try:
        return f"{started}, {os.readlink('/proc/self/ns/time')}"
    except OSError:  # before Linux 5.6
        return started
