"""Find the call paths: the loops, branches and calls through which a jaxpr reaches our binds."""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ... import jax_compat
from ...recording import Site, VmapLevel, calls_each_time
from ..call import Bind, HostCallback, is_held, is_varying, is_watching
from ._constant_branches import enters, index_of

# JAX lowers only this part of a solver; matvec and the transposes are carried along unused.
_LOWERED_PART = {"custom_linear_solve": "solve"}
_CALLS = {"pjit": "jit", "jit": "jit", "checkpoint": "remat", "remat2": "remat", "remat": "remat"}
# JAX's own callbacks. Their parameters hold user objects, whose attributes may be anything.
_JAXS_OWN = frozenset(
    ("pure_callback", "io_callback", "debug_callback", "debug_print", "buffer_callback")
)
_PLAIN = {bool, int, float, str, type(None)}
# Of an inner jaxpr in a program: `Step.place` of each step, outermost first.
Place = tuple[int, ...]
MAX_PATHS = 10_000  # in one program; further paths are ignored


class Step(NamedTuple):
    """One loop, branch or call around a bind."""

    kind: str  # "scan", "while", "cond", "jit", "remat", or the name of another primitive
    length: int | None = None  # iterations of a scan
    masks: bool = False  # it runs for all batch elements until the last one has finished
    only: tuple[str, ...] = ()  # a branch for these platforms
    never: tuple[str, ...] = ()  # a branch for all platforms but these
    unroll: int = 1  # iterations of a scan that JAX unrolls
    reached: bool | None = None  # of a branch or a while body; None if that depends on data
    ahead: bool = False  # a while predicate that JAX evaluates before the loop, too
    again: bool = False  # a checkpoint that a derivative runs again
    of_vmap: bool = False  # a scan over batch elements, in the batching rule of JAX's own callback
    name: str = ""  # as the user calls it: "fori_loop", which is lowered as a scan or while
    place: int = 0  # number of its jaxpr among the inner jaxprs of the one around it

    @property
    def copies(self) -> tuple[int, int]:
        """How many copies of its body the program has: inside a loop, and outside of it."""
        if self.kind != "scan" or self.length is None:
            return (1, 0) if self.kind == "while" else (0, 1)
        turns, rest = divmod(self.length, self.unroll)
        inside = self.unroll if turns else 0
        return (inside, rest) if turns > 1 else (0, inside + rest)

    @property
    def is_one_turn(self) -> bool:
        """Whether it is a scan that JAX writes as a loop of one iteration, not without a loop."""
        if self.kind != "scan" or self.length is None:
            return False
        turns, rest = divmod(self.length, self.unroll)
        return turns == 1 and (self.unroll == 1 or rest > 0)

    @property
    def depends_on_data(self) -> bool:
        """Whether it is a branch that is taken or not depending on data."""
        return self.reached is None and not (self.only or self.never)

    def leads_elsewhere(self, platform: str) -> bool:
        """Return whether it is a branch for other platforms; True if `platform` is unknown."""
        if not platform:
            return bool(self.only or self.never)
        return platform in self.never or (bool(self.only) and platform not in self.only)


class Path(NamedTuple):
    """One call path: how a program reaches a bind."""

    bind: Bind
    levels: tuple[Any, ...]  # the vmap levels of the bind on this path
    operands: int  # number of arrays that it gets
    steps: tuple[Step, ...]  # outermost first
    scanned: tuple[VmapLevel, ...] = ()  # vmaps over whose batch elements the program itself loops
    varies: bool = False  # data decides for how many batch elements the host is called
    derived: bool = False  # it is differentiated code that uses the result

    @property
    def is_batched(self) -> bool:
        """Whether a vmap maps over one of its operands."""
        return bool(self.levels or self.scanned)

    @property
    def has_several_elements(self) -> bool:
        """Whether the vmaps that map over its operands have more than one batch element."""
        return any(level.size != 1 for level in (*self.levels, *self.scanned))

    @property
    def elements(self) -> int:
        """The number of host calls for each crossing."""
        return calls_each_time(self.levels)

    @property
    def calls(self) -> int | None:
        """The number of host calls of a run; None if that depends on data."""
        product = self.elements
        for step in self.steps:
            if step.reached is False:
                return 0
            if step.kind == "while" or (step.kind == "cond" and step.depends_on_data):
                return None
            product *= 1 if step.length is None else step.length
        return product

    @property
    def depths(self) -> list[int]:
        """The number of loops around each copy of the bind in the program.

        With ``unroll=2``, for one, JAX writes the body of a scan twice into the loop, and the
        remaining iteration after it.
        """
        return _depths(step.copies for step in self.steps)

    @property
    def depths_before_loops(self) -> list[int]:
        """As `depths`, of the copies that JAX adds where it evaluates a predicate before its loop.

        With two such loops around each other, JAX adds three copies.
        """
        copies = ((1, 1) if step.ahead else step.copies for step in self.steps)
        return list((Counter(_depths(copies)) - Counter(self.depths)).elements())

    @property
    def predicates(self) -> list[Place]:
        """The predicates around the bind that JAX evaluates before their loops, too."""
        places = tuple(step.place for step in self.steps)
        return [places[: end + 1] for end, step in enumerate(self.steps) if step.ahead]

    def is_unreachable(self, platform: str) -> bool:
        """Return whether no run on `platform` calls the host on this path, whatever the data."""
        return any(level.is_empty for level in self.levels) or any(
            step.length == 0 or step.reached is False or step.leads_elsewhere(platform)
            for step in self.steps
        )

    def inside_jit(self) -> tuple[Step, ...]:
        """Return the steps inside the innermost jit, which were there when the bind was made."""
        places = [place for place, step in enumerate(self.steps) if step.kind == "jit"]
        return self.steps[places[-1] + 1 :] if places else self.steps


def _depths(copies: Iterable[tuple[int, int]]) -> list[int]:
    found = [0]
    for inside, outside in copies:
        found = [loops + 1 for loops in found] * inside + found * outside
    return found


def paths(jaxpr: Any) -> list[Path]:
    """Return every path to every bind in `jaxpr` that is ours or observed, in program order."""
    found: list[Path] = []
    for path in _walk(jaxpr, (), {}):
        found.append(path)
        if len(found) == MAX_PATHS:
            break
    return found


def sites(jaxpr: Any) -> set[Site]:
    """Return the call sites of all binds in `jaxpr`, also in parts that JAX does not lower."""
    return {path.bind.site for path in _walk(jaxpr, (), {}, carried=True)}


def _walk(
    jaxpr: Any,
    steps: tuple[Step, ...],
    empty: dict[int, Any],
    carried: bool = False,
    derived: bool = False,
) -> Iterator[Path]:
    """Walk all equations and yield the paths to our binds.

    Args:
        jaxpr: the jaxpr to walk.
        steps: the steps around it, outermost first.
        empty: jaxprs without binds of ours, by identity; filled here.
        carried: whether to include jaxprs that JAX carries along without lowering them.
        derived: whether it is part of a function that is differentiated.
    """
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    if id(jaxpr) in empty:
        return
    any_found, places = False, itertools.count()
    read = functools.cache(lambda: _read(jaxpr))
    for equation in jaxpr.eqns:
        params = equation.params
        held = params.get("callback", params.get("fmt"))
        if issubclass(type(held), HostCallback):  # not isinstance: `held` may be any user object
            any_found = True
            yield Path(
                held.bind,
                params["levels"],
                len(equation.invars),
                steps,
                varies=is_varying(held),
                derived=_is_derived(equation, derived) and _uses(equation, read()),
            )
            continue
        if is_watching() and is_held(held):
            any_found = True
            path = _observed_path(held, len(equation.invars), steps)
            # The result of one that is batched is that of a scan, which is not looked at.
            alone = not path.is_batched and _is_derived(equation, derived)
            yield path._replace(derived=alone and _uses(equation, read()))
            continue
        for inner, step in _inner(equation, carried):
            below, here = _is_derived(equation, derived), step._replace(place=next(places))
            if step.kind == "cond" and steps and steps[-1].kind == "scan":
                here = here._replace(masks=_asks_all_elements(jaxpr))
            for path in _walk(inner, (*steps, here), empty, carried, below):
                any_found = True
                yield path
    if not any_found:
        empty[id(jaxpr)] = jaxpr


def _is_derived(equation: Any, around: bool) -> bool:
    return around or jax_compat.is_differentiated(equation)


def is_derivative(jaxpr: Any) -> bool:
    """Return whether a part of a program is differentiated."""
    waiting, known = [jaxpr], set()
    while waiting:
        part = waiting.pop()
        part = getattr(part, "jaxpr", part)
        if id(part) in known:
            continue
        known.add(id(part))
        for equation in part.eqns:
            if jax_compat.is_differentiated(equation):
                return True
            if "callback" not in equation.params and "fmt" not in equation.params:
                waiting += _jaxprs(equation.params.values())
    return False


def _read(jaxpr: Any) -> set[int]:
    """Return the identities of the variables that `jaxpr` returns, or computes with."""
    computed_with = (one for equation in jaxpr.eqns for one in equation.invars)
    return set(map(id, (*jaxpr.outvars, *computed_with)))


def _uses(equation: Any, read: set[int]) -> bool:
    return any(id(one) in read for one in equation.outvars)


def _observed_path(held: Any, operands: int, steps: tuple[Step, ...]) -> Path:
    """Return the path to a bind of JAX's own API, whose looped vmaps are scans of the program."""
    levels: tuple[VmapLevel, ...] = held.batch.levels
    own = [level for level in levels if level.looped]
    inside = steps[len(steps) - len(own) :]
    if [(step.kind, step.length) for step in inside] == [("scan", level.size) for level in own]:
        marked = (step._replace(of_vmap=True) for step in inside)
        steps = (*steps[: len(steps) - len(own)], *marked)
    others = tuple(level for level in levels if not level.looped)
    return Path(held.bind, others, operands, steps, scanned=tuple(own))


def _inner(equation: Any, carried: bool) -> Iterator[tuple[Any, Step]]:
    params = equation.params
    name: str = equation.primitive.name
    if name in _JAXS_OWN:
        return
    if name in _LOWERED_PART and not carried:
        yield getattr(params["jaxprs"], _LOWERED_PART[name]), Step(name)
        return
    inners = list(_jaxprs(params.values()))
    if not inners:  # most equations have no inner jaxpr
        return
    if name == "while":
        yield from ((inner, _while_step(equation, inner)) for inner in inners)
        return
    if name == "cond":
        yield from _branches(equation)
        return
    if name == "scan":
        step = Step("scan", int(params["length"]), unroll=max(1, int(params.get("unroll", 1))))
        step = step._replace(name=jax_compat.loop_name(params["jaxpr"]))
    else:
        step = Step(_CALLS.get(name, name), again=bool(params.get("differentiated", False)))
    for inner in inners:
        yield inner, step


def _asks_all_elements(jaxpr: Any) -> bool:
    """Return whether `jaxpr` goes on if any batch element does, as in the loops of equinox."""
    return any(
        equation.primitive.name == "unvmap_any" and equation.invars[0].aval.shape
        for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns
    )


def _while_step(equation: Any, inner: Any) -> Step:
    predicate = equation.params["cond_jaxpr"]
    (aval,) = getattr(predicate, "out_avals", (None,))
    masks = bool(getattr(aval, "shape", ())) or _asks_all_elements(predicate)
    if inner is predicate:
        return Step("while", masks=masks, ahead=jax_compat.has_ordered_effects(predicate))
    reached = None if enters(equation) is not False else False
    return Step("while", masks=masks, reached=reached, name=jax_compat.loop_name(inner))


def _branches(equation: Any) -> Iterator[tuple[Any, Step]]:
    branches = equation.params["branches"]
    if platforms := equation.params.get("branches_platforms"):
        yield from _by_platform(branches, platforms)
        return
    taken = index_of(equation)
    for number, branch in enumerate(branches):
        yield branch, Step("cond", reached=None if taken is None else number == taken)


def _by_platform(
    branches: Sequence[Any], platforms: Sequence[tuple[str, ...] | None]
) -> Iterator[tuple[Any, Step]]:
    """Yield the branches of a `jax.lax.platform_dependent`; None means all other platforms."""
    named = tuple(name for names in platforms for name in names or ())
    for branch, own in zip(branches, platforms, strict=True):
        yield branch, Step("cond", never=named) if own is None else Step("cond", only=own)


def _jaxprs(parameters: Any) -> Iterator[Any]:
    for value in parameters:
        if type(value) in _PLAIN:
            continue
        if hasattr(value, "eqns") or hasattr(getattr(value, "jaxpr", None), "eqns"):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from _jaxprs(value)


def by_bind(paths: list[Path]) -> dict[Bind, list[Path]]:
    """Group `paths` by their bind."""
    grouped: dict[Bind, list[Path]] = {}
    for path in paths:
        grouped.setdefault(path.bind, []).append(path)
    return grouped
