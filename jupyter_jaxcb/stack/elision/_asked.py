"""Find what a program's text asks for: the call paths through which a jaxpr reaches our binds."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ... import jax_compat
from ...recording import VmapLevel, calls_each_time
from ..call import Bind, HostCallback, is_held, is_watching

MAX_PATHS = 10_000  # in one program; further paths are ignored
LOOPS = ("scan", "while")
# JAX lowers only this part of a solver; matvec and the transposes are carried along unused.
_LOWERED_PART = {"custom_linear_solve": "solve"}
_CALLS = {"pjit": "jit", "jit": "jit", "checkpoint": "remat", "remat2": "remat", "remat": "remat"}
# JAX's own callbacks. Their parameters hold user objects, whose attributes may be anything.
_JAXS_OWN = frozenset(
    ("pure_callback", "io_callback", "debug_callback", "debug_print", "buffer_callback")
)
_PLAIN = {bool, int, float, str, type(None)}
_COMPARISONS = {
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "eq": operator.eq, "ne": operator.ne,
}  # fmt: skip

Step = tuple[str, int | None]  # a loop, branch or call, and the iterations of a scan: ("scan", 5)

EMPTY_BATCH = "vmap maps it over an axis of size 0, so there is no batch element to call it for"
EMPTY_LOOP = "it is in a loop of length 0"
OTHER_BRANCH = "the program never enters the branch or loop around it"
OTHER_PLATFORM = "it is in a branch for another platform"


class Path(NamedTuple):
    """One call path: how a program reaches a bind. Without a bind: an equation of the program."""

    bind: Bind | None = None
    levels: tuple[VmapLevel, ...] = ()  # the vmaps over whose elements the host is called
    scanned: tuple[VmapLevel, ...] = ()  # vmaps over whose elements the program itself loops
    steps: tuple[Step, ...] = ()  # outermost first
    words: tuple[str, ...] = ()  # of the steps, as the user calls them: "fori_loop of 3"
    times: int | None = 1  # how often a run takes it; None if that depends on data
    # The loops around each copy of the bind in the program, not counting those of one iteration.
    # With ``unroll=2``, JAX writes the body of a scan twice into the loop, and an iteration that
    # is left after it.
    depths: tuple[int, ...] = (0,)
    # As `depths`, with the copies that JAX adds where it evaluates a predicate before its loop.
    depths_early: tuple[int, ...] = (0,)
    # For each loop around it that JAX writes into the program: whether it has several iterations.
    turning: tuple[bool, ...] = ()
    never: str = ""  # why no run takes it, whatever the data
    masked_loop: bool = False  # in a loop that runs for all batch elements until the last one ends
    again: bool = False  # in a checkpoint that a derivative runs again
    derived: bool = False  # it is differentiated code that uses the result
    exact: bool = False  # no batch element makes the call that does not reach it
    varies: bool = False  # data decides for how many batch elements the host is called
    carried: bool = False  # JAX carries it along without lowering it
    empty: str = ""  # why nothing can need its results, if they have no elements

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
        if self.never:
            return 0
        return None if self.times is None else self.times * self.elements

    @property
    def inside_jit(self) -> tuple[Step, ...]:
        """The steps that were there when the bind was made: inside the innermost jit.

        Or further out, if a derivative called the rule that made the bind.
        """
        traced = () if self.bind is None else self.bind.around
        jits = 1 + sum(kind == "traced jit" for kind, _ in traced)
        places = [place for place, (kind, _) in enumerate(self.steps) if kind == "jit"]
        return self.steps[places[-jits] + 1 :] if len(places) >= jits else self.steps

    def into(self, kind: str, length: int | None = None, name: str = "", **changes: Any) -> Path:
        """Return the path into a loop, branch or call."""
        word = (name or kind) if length is None else f"{name or kind} of {length}"
        return self._replace(
            steps=(*self.steps, (kind, length)),
            words=(*self.words, word),
            **changes,
        )

    def into_scan(self, length: int, unroll: int, name: str) -> Path:
        """Return the path into the body of a scan."""
        turns, rest = divmod(length, unroll)
        inside, after = (unroll, rest) if turns > 1 else (0, length)
        is_loop = turns > 1 or (turns == 1 and (unroll == 1 or rest > 0))
        return self.into(
            "scan", length, name,
            times=None if self.times is None else self.times * length,
            depths=_deeper(self.depths) * inside + self.depths * after,
            depths_early=_deeper(self.depths_early) * inside + self.depths_early * after,
            turning=(*self.turning, turns > 1) if is_loop else self.turning,
            never=self.never or EMPTY_LOOP * (length == 0),
        )  # fmt: skip

    def into_while(self, name: str, **changes: Any) -> Path:
        """Return the path into the body of a while loop."""
        return self.into(
            "while", None, name,
            times=None, depths=_deeper(self.depths), depths_early=_deeper(self.depths_early),
            turning=(*self.turning, True), **changes,
        )  # fmt: skip


def _deeper(depths: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(loops + 1 for loops in depths)


def paths(jaxpr: Any, platform: str) -> list[Path]:
    """Return every path to every bind in `jaxpr` that is ours or observed, in program order.

    Those in jaxprs that JAX carries along without lowering them are `carried`.

    Args:
        jaxpr: the program.
        platform: what it is compiled for; empty if no host call of it was lowered.
    """
    return list(itertools.islice(_Walk(platform).paths(jaxpr, Path()), MAX_PATHS))


def _equations(jaxpr: Any) -> Iterator[Any]:
    """Yield the equations of a program, in each of its jaxprs once."""
    waiting, seen = [jaxpr], set()
    while waiting:
        part = waiting.pop()
        part = getattr(part, "jaxpr", part)
        if id(part) in seen:
            continue
        seen.add(id(part))
        for equation in part.eqns:
            yield equation
            if "callback" not in equation.params and "fmt" not in equation.params:
                waiting += _jaxprs(equation.params.values())


def is_derivative(jaxpr: Any) -> bool:
    """Return whether a part of a program is differentiated."""
    return any(map(jax_compat.is_differentiated, _equations(jaxpr)))


# The primitives of JAX's own callbacks, which are not recorded unless they are observed.
_OF_JAX = ("pure_callback", "io_callback", "debug_callback", "debug_print", "buffer_callback")


def count_of_jax(jaxpr: Any) -> int:
    """Count the callbacks in a program that are of JAX's own API."""
    return sum(equation.primitive.name in _OF_JAX for equation in _equations(jaxpr))


class _Walk:
    """A walk through all equations of a program.

    Args:
        platform: see `paths`.
    """

    def __init__(self, platform: str) -> None:
        self._platform = platform
        self._barren: dict[int, Any] = {}  # jaxprs without binds of ours, by identity

    def paths(self, jaxpr: Any, around: Path) -> Iterator[Path]:
        """Yield the paths to our binds in `jaxpr`, which is reached through `around`."""
        jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
        if id(jaxpr) in self._barren:
            return
        any_path = False
        read = functools.cache(lambda: _variables_read(jaxpr))
        for equation in jaxpr.eqns:
            here = around
            if not around.derived and jax_compat.is_differentiated(equation):
                here = around._replace(derived=True)
            path = _host_call(equation, here)
            if path is not None:
                any_path = True
                if path.derived and not any(id(result) in read() for result in equation.outvars):
                    path = path._replace(derived=False)
                yield path
                continue
            for inner, there in self._inside(equation, here, jaxpr):
                for path in self.paths(inner, there):
                    any_path = True
                    yield path
        if not any_path:
            self._barren[id(jaxpr)] = jaxpr

    def _inside(self, equation: Any, around: Path, jaxpr: Any) -> Iterator[tuple[Any, Path]]:
        """Yield each jaxpr in an equation of `jaxpr`, with the path into it."""
        params, name = equation.params, str(equation.primitive.name)
        if name in _JAXS_OWN:
            return
        inners = list(_jaxprs(params.values()))
        if name in _LOWERED_PART:
            part = getattr(params["jaxprs"], _LOWERED_PART[name])
            inside = around.into(name)
            yield part, inside
            carried = inside._replace(carried=True)
            yield from ((inner, carried) for inner in inners if inner is not part)
            return
        if not inners:  # most equations
            return
        if name == "scan":
            loop = jax_compat.loop_name(params["jaxpr"])
            unroll = max(1, int(params.get("unroll", 1)))
            inside = around.into_scan(int(params["length"]), unroll, loop)
            yield from ((inner, inside) for inner in inners)
        elif name == "while":
            yield from self._while(equation, around)
        elif name == "cond":
            in_scan = bool(around.steps) and around.steps[-1][0] == "scan"
            masked = around.masked_loop or (in_scan and _asks_all_elements(jaxpr))
            for branch, inside in self._branches(equation, around):
                yield branch, inside._replace(masked_loop=masked)
        else:
            again = around.again or bool(params.get("differentiated", False))
            inside = around.into(_CALLS.get(name, name), again=again)
            yield from ((inner, inside) for inner in inners)

    def _while(self, equation: Any, around: Path) -> Iterator[tuple[Any, Path]]:
        predicate, body = equation.params["cond_jaxpr"], equation.params["body_jaxpr"]
        (aval,) = getattr(predicate, "out_avals", (None,))
        masked = bool(getattr(aval, "shape", ())) or _asks_all_elements(predicate)
        masked = masked or around.masked_loop
        inside = around.into_while("", masked_loop=masked)
        if jax_compat.has_ordered_effects(predicate):  # JAX evaluates it once before the loop, too
            early = (*inside.depths_early, *around.depths_early)
            yield predicate, inside._replace(depths_early=early)
        else:
            yield predicate, inside
        never = around.never or OTHER_BRANCH * (_enters(equation) is False)
        name = jax_compat.loop_name(body)
        yield body, around.into_while(name, masked_loop=masked, never=never)

    def _branches(self, equation: Any, around: Path) -> Iterator[tuple[Any, Path]]:
        branches = equation.params["branches"]
        if platforms := equation.params.get("branches_platforms"):  # platform_dependent
            named = {name for names in platforms for name in names or ()}
            for branch, names in zip(branches, platforms, strict=True):
                if names is None:  # all other platforms
                    taken = self._platform not in named and bool(self._platform)
                else:
                    taken = self._platform in names
                yield (
                    branch,
                    around.into("cond", never=around.never or OTHER_PLATFORM * (not taken)),
                )
            return
        index = _constant(equation.invars[0], {})
        if index is None:
            yield from ((branch, around.into("cond", times=None)) for branch in branches)
            return
        chosen = int(np.clip(index, 0, len(branches) - 1))
        for number, branch in enumerate(branches):
            never = around.never or OTHER_BRANCH * (number != chosen)
            yield branch, around.into("cond", never=never)


def _host_call(equation: Any, around: Path) -> Path | None:
    """Return the path to a bind that is ours or observed; None for another equation."""
    held = equation.params.get("callback", equation.params.get("fmt"))
    if issubclass(type(held), HostCallback):  # not isinstance: `held` may be any user object
        path = around._replace(
            bind=held.bind, levels=equation.params["levels"], varies=held.varies,
            exact="text" in held.options.masked,
        )  # fmt: skip
        is_empty = any(level.is_empty for level in path.levels)
    elif is_watching() and is_held(held):
        levels: tuple[VmapLevel, ...] = held.batch.levels
        looped = tuple(level for level in levels if level.looped)
        # The batching rule of JAX's own callback makes a scan of a vmap whose elements it loops
        # over. The result of one that is batched is that of a scan, which is not looked at.
        first = len(around.steps) - len(looped)
        scans = tuple(("scan", level.size) for level in looped)
        path = around._replace(
            bind=held.bind,
            levels=tuple(level for level in levels if not level.looped),
            scanned=looped,
            words=around.words[:first] if around.steps[max(first, 0) :] == scans else around.words,
            derived=around.derived and not levels,
        )
        is_empty = any(level.size == 0 for level in levels)
    else:
        return None
    if is_empty:
        return path._replace(never=EMPTY_BATCH)
    results = [variable.aval.shape for variable in equation.outvars]
    if held.bind.site.flavor.endswith("pure") and all(0 in shape for shape in results):
        return path._replace(empty="its result is empty" if results else "it returns nothing")
    return path


def _variables_read(jaxpr: Any) -> set[int]:
    """Return the identities of the variables that `jaxpr` returns, or computes with."""
    operands = (variable for equation in jaxpr.eqns for variable in equation.invars)
    return set(map(id, (*jaxpr.outvars, *operands)))


def _asks_all_elements(jaxpr: Any) -> bool:
    """Return whether `jaxpr` goes on if any batch element does, as in the loops of equinox."""
    return any(
        equation.primitive.name == "unvmap_any" and equation.invars[0].aval.shape
        for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns
    )


def _enters(loop: Any) -> bool | None:
    """Return whether every run enters a ``while``; None if that depends on data.

    Known only if its condition compares the initial value of its carry with a constant. XLA finds
    many more.
    """
    predicate, params = loop.params["cond_jaxpr"].jaxpr, loop.params
    of_predicate, of_body = params["cond_nconsts"], params["body_nconsts"]
    operands = [*loop.invars[:of_predicate], *loop.invars[of_predicate + of_body :]]
    begins_with = dict(zip(predicate.invars, operands, strict=True))
    if len(predicate.eqns) != 1 or predicate.eqns[0].primitive.name not in _COMPARISONS:
        return None
    (compared,) = predicate.eqns
    if compared.outvars != predicate.outvars:
        return None
    left, right = (_constant(operand, begins_with) for operand in compared.invars)
    if left is None or right is None:
        return None
    return bool(_COMPARISONS[compared.primitive.name](left, right))


def _constant(operand: Any, begins_with: dict[Any, Any]) -> Any:
    """Return the constant scalar that `operand` is; None if it is not constant."""
    if not hasattr(operand, "val"):
        operand = begins_with.get(operand)
    value = getattr(operand, "val", None)
    return None if value is None or np.ndim(value) else value


def _jaxprs(parameters: Any) -> Iterator[Any]:
    for value in parameters:
        if type(value) in _PLAIN:
            continue
        if hasattr(value, "eqns") or hasattr(getattr(value, "jaxpr", None), "eqns"):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from _jaxprs(value)
