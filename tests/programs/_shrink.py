"""Make a failing program smaller while it still fails in the same way."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

from ._program import Function, Program, walk


def shrink(program: Program, fails: Callable[[Program], bool], tries: int = 600) -> Program:
    """Return the smallest program found for which `fails` still returns True."""
    changed = True
    while changed and tries > 0:
        changed = False
        for candidate in _smaller(program):
            tries -= 1
            if tries <= 0:
                break
            candidate = without_unused(candidate)
            if fails(candidate):
                program, changed = candidate, True
                break
    return program


def without_unused(program: Program) -> Program:
    """Remove the helpers and host functions that nothing calls."""
    used = _used(program)
    program.helpers = [helper for helper in program.helpers if helper.name in used]
    program.hosts = [host for host in program.hosts if host.name in used]
    if program.fail and program.fail[0] not in used:
        program.fail = None
    return program


def _used(program: Program) -> set[str]:
    helpers = {helper.name: helper for helper in program.helpers}
    hosts = {host.name: host for host in program.hosts}
    used: set[str] = set()
    waiting = [program.main]

    def use(name: str) -> None:
        if not name or name in used:
            return
        used.add(name)
        if name in helpers:
            waiting.append(helpers[name])
        if name in hosts:
            use(hosts[name].factor)

    while waiting:
        for function in walk([waiting.pop()]):
            use(function.factor)
            use(function.observer.split("(")[0])
            for statement in function.body:
                for name in (statement.host, *statement.calls):
                    use(name)
    return used


def _smaller(program: Program) -> Iterator[Program]:
    """Yield programs with one part removed, the largest removals first."""
    if len(program.inputs) > 1:
        yield _with(program, inputs=program.inputs[:1], blocks="one")
        if program.blocks != "one":
            yield _with(program, blocks="one")
        yield _with(program, inputs=program.inputs[1:], blocks="one")
    if program.mode != "jit":
        yield _with(program, mode="jit")
    if program.x64:
        yield _with(program, x64=False)
    if program.fail:
        yield _with(program, fail=None)
    for place, function in enumerate(walk(program.functions())):
        half = len(function.body) // 2
        if half > 1:
            yield _changed(program, place, lambda f, n=half: f.body.__delitem__(slice(n)))
            yield _changed(program, place, lambda f, n=half: f.body.__delitem__(slice(n, None)))
    for place, function in enumerate(walk(program.functions())):
        for number in range(len(function.body)):
            yield _changed(program, place, lambda f, n=number: f.body.pop(n))
    for place, function in enumerate(walk(program.functions())):
        yield from _simpler(program, place, function)
    for number, host in enumerate(program.hosts):
        simplest = {"factor": "", "rule": "", "method": "sequential", "math": 0, "queued": False}
        for field, value in simplest.items():
            if getattr(host, field) not in (value, None):
                smaller = copy.deepcopy(program)
                setattr(smaller.hosts[number], field, value)
                yield smaller


def _simpler(program: Program, place: int, function: Function) -> Iterator[Program]:
    for number, statement in enumerate(function.body):
        if statement.functions:
            yield _changed(program, place, lambda f, n=number: _opened(f, n))
            if len(statement.functions[0].parameters) == 1 and not statement.functions[0].ending:
                yield _changed(program, place, lambda f, n=number: _called(f, n))
        elif statement.calls and statement.template != f"{statement.calls[0]}($0)":
            yield _changed(program, place, lambda f, n=number: _plain(f, n))
    if function.decorator:
        yield _changed(program, place, lambda f: setattr(f, "decorator", ""))
    for rule in ("factor", "observer"):
        if getattr(function, rule):
            yield _changed(program, place, lambda f, rule=rule: setattr(f, rule, ""))
    for number in range(len(function.result)):
        if len(function.result) > 1:
            rest = function.result[:number] + function.result[number + 1 :]
            yield _changed(program, place, lambda f, rest=rest: setattr(f, "result", rest))


def _opened(function: Function, number: int) -> None:
    """Replace a statement by the bodies of its inner functions."""
    statement = function.body[number]
    body = [line for inner in statement.functions for line in inner.body]
    function.body[number : number + 1] = body


def _called(function: Function, number: int) -> None:
    statement = function.body[number]
    statement.functions = statement.functions[:1]
    statement.template, statement.targets = "$f($0)", statement.targets[:1]
    statement.calls = ()


def _plain(function: Function, number: int) -> None:
    statement = function.body[number]
    statement.template = f"{statement.calls[0]}($0)"
    statement.calls = statement.calls[:1]


def _with(program: Program, **fields: object) -> Program:
    smaller = copy.deepcopy(program)
    for name, value in fields.items():
        setattr(smaller, name, value)
    return smaller


def _changed(program: Program, place: int, change: Callable[[Function], object]) -> Program:
    smaller = copy.deepcopy(program)
    change(walk(smaller.functions())[place])
    return smaller
