"""Run a program and collect its results, the calls of host functions, and the recordings."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import itertools
import linecache
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

import jax
import numpy as np

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb import host_callback

from . import _preludes
from ._numbers import Number, base
from ._plain import Plain
from ._program import Program
from ._text import Writer

_numbers = itertools.count()


@dataclasses.dataclass
class Run:
    """One call of the program."""

    result: Any = None
    returned: frozenset[Any] = frozenset()  # structures and avals of what callbacks returned
    changed: int = 0  # arguments of host functions that changed after the call
    error: BaseException | None = None
    log: tuple[tuple[str, Any], ...] = ()  # host functions and their arguments, in call order

    @property
    def counts(self) -> Counter[str]:
        return Counter(name for name, _ in self.log)


@dataclasses.dataclass
class Block:
    """A recorded block: the runs made in it, and the recording."""

    runs: list[Run]
    recording: Any


@dataclasses.dataclass
class Ran:
    """All runs of a program with one set of callbacks."""

    text: str
    writer: Writer
    runs: list[Run] = dataclasses.field(default_factory=list)
    blocks: list[Block] = dataclasses.field(default_factory=list)
    explained: Any = None
    explain_error: BaseException | None = None
    explain_log: tuple[Any, ...] = ()


@contextlib.contextmanager
def precision(x64: bool) -> Iterator[None]:
    """Enable or disable x64 for the whole process."""
    # Not the context `jax.enable_x64`, which applies to this thread only: JAX converts the
    # arguments of a callback on XLA's threads.
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", x64)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", before)


class World:
    """A module made from a program's text."""

    def __init__(self, text: str) -> None:
        file = f"<program {next(_numbers)}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        self.file = file
        self.names: dict[str, Any] = {}
        exec(compile(text, file, "exec"), self.names)
        self.called = self.names["program"]

    def prepare(self, mode: str) -> None:
        program = self.names["program"]
        if mode == "jit":
            self.called = jax.jit(program)
        if mode == "aot":
            self.called = jax.jit(program).lower(jax.ShapeDtypeStruct((), np.float32)).compile()

    def run(self, value: float) -> Run:
        log = self.names["LOG"]
        before = len(log)
        run, printed = Run(), io.StringIO()
        with contextlib.redirect_stdout(printed):
            try:
                run.result = np.asarray(self.called(np.float32(value)))
            except Exception as error:
                run.error = error
            for wait in (jax.effects_barrier, host_callback.barrier_wait):
                try:
                    wait()
                except Exception as error:
                    run.error = run.error or error
        lines = [line.split() for line in printed.getvalue().splitlines()]
        prints = tuple((name, (float(value),)) for name, value in lines)
        run.log = (*log[before:], *prints)
        run.returned = frozenset(self.names["RETURNED"])
        held = self.names["HELD"]
        run.changed = sum(array.tobytes() != was for array, was in held)
        held.clear()
        return run

    def close(self) -> None:
        linecache.cache.pop(self.file, None)


def run_ours(program: Program, *, explain: bool) -> Ran:
    text, writer = _preludes.ours(program)
    ran = Ran(text, writer)
    if explain:
        _explain(ran)
    world = World(text)
    inputs = list(program.inputs)
    groups = [[value] for value in inputs] if program.blocks == "each" else [inputs]
    try:
        if program.blocks == "late":
            try:
                world.prepare(program.mode)
            except Exception as error:
                ran.runs.append(Run(error=error))
                return ran
            ran.runs.append(world.run(inputs[0]))
            groups = [inputs[1:]]
        for number, group in enumerate(groups):
            with jaxcb.record() as r:
                runs = []
                if number == 0 and program.blocks != "late":
                    try:
                        world.prepare(program.mode)
                    except Exception as error:
                        runs.append(Run(error=error))
                        group = []
                runs += [world.run(value) for value in group]
            ran.runs += runs
            ran.blocks.append(Block(runs, r.recording))
    finally:
        world.close()
    return ran


def _explain(ran: Ran) -> None:
    world = World(ran.text)
    try:
        argument = jax.ShapeDtypeStruct((), np.float32)
        ran.explained = jaxcb.explain(world.names["program"])(argument)
    except Exception as error:
        ran.explain_error = error
    finally:
        ran.explain_log = tuple(world.names["LOG"])
        world.close()


def run_jaxs(program: Program, by_debug: Collection[str] = ()) -> Ran:
    text, writer = _preludes.jaxs(program, set(by_debug))
    ran = Ran(text, writer)
    world = World(text)
    try:
        try:
            world.prepare(program.mode)
        except Exception as error:
            ran.runs.append(Run(error=error))
            return ran
        ran.runs = [world.run(value) for value in program.inputs]
    finally:
        world.close()
    return ran


@dataclasses.dataclass
class Meant:
    """What one run of a program means."""

    result: float
    calls: list[tuple[str, Any]]  # host functions and their arguments, in the order of the text
    unsure: set[str]
    repeated: set[str]  # host functions that a `while` calls in more than its first step

    @property
    def counts(self) -> Counter[str]:
        return Counter(name for name, _ in self.calls)


def run_plain(program: Program, value: float) -> Meant:
    text, _ = _preludes.plain(program)
    world = Plain(f"<plain {next(_numbers)}>")
    world.hosts = {host.name: host for host in program.hosts}
    names = world.names()
    exec(compile(text, world.file, "exec"), names)
    result = base(names["program"](Number(value))).value
    seen: dict[Any, Any] = {}
    for name, key, values in world.calls:
        seen.setdefault((name, key), values)
    calls = [(name, values) for (name, _), values in seen.items()]
    return Meant(result, calls, world.unsure, world.repeated)
