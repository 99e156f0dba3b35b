"""Through which loops, branches and calls a traced program reaches our binds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ...recording import Site
from .. import jax_compat
from ..core import Bind, HostCallback, is_held, is_observing
from ._constant_branches import enters, index_of

# Of a solver JAX lowers this part, and carries the others along: matvec and the transposes.
_LOWERED_PART = {"custom_linear_solve": "solve"}
_CALLS = {"pjit": "jit", "jit": "jit", "checkpoint": "remat", "remat2": "remat", "remat": "remat"}
# Callbacks of JAX's own: what these hold is the user's, and may answer anything to any question.
_JAXS_OWN = frozenset(
    ("pure_callback", "io_callback", "debug_callback", "debug_print", "buffer_callback")
)
_PLAIN = {bool, int, float, str, type(None)}
MAX_PATHS = 10_000  # in one program; what comes later is not told apart


class Step(NamedTuple):
    """One thing around a bind."""

    kind: str  # "scan", "while", "cond", "jit", "remat", or the name of another primitive
    length: int | None = None  # of a scan
    masks: bool = False  # a while whose predicate is mapped: batch elements that finished go on
    only: tuple[str, ...] = ()  # a branch for these platforms
    never: tuple[str, ...] = ()  # a branch for all platforms but these
    unroll: int = 1  # steps of a scan that JAX writes one after the other
    reached: bool | None = None  # a branch, or the body of a while; None: depends on data
    ahead: bool = False  # the predicate of a while that JAX evaluates before the loop, too
    again: bool = False  # a checkpoint that a derivative runs again

    @property
    def copies(self) -> tuple[int, int]:
        """How often it stands in the program what it holds: in a loop, and outside of it."""
        if self.kind != "scan" or self.length is None:
            return (1, 0) if self.kind == "while" else (0, 1)
        turns, rest = divmod(self.length, self.unroll)
        inside = self.unroll if turns else 0
        return (inside, rest) if turns > 1 else (0, inside + rest)

    @property
    def depends_on_data(self) -> bool:
        """Whether it is a branch, and which one is taken is not known."""
        return self.reached is None and not (self.only or self.never)

    def leads_elsewhere(self, platform: str) -> bool:
        """Whether it is a branch for other platforms; also if which this is is not known."""
        if not platform:
            return bool(self.only or self.never)
        return platform in self.never or (bool(self.only) and platform not in self.only)


class Path(NamedTuple):
    """One path in which a program reaches a bind."""

    bind: Bind
    levels: tuple[Any, ...]  # the vmaps of the bind there
    operands: int  # how many arrays it gets
    steps: tuple[Step, ...]  # outermost first
    mapped: bool = False  # by a vmap whose batch elements JAX loops over itself

    @property
    def elements(self) -> int:
        """Host calls of each crossing."""
        product = 1
        for level in self.levels:
            product *= level.size if level.looped else 1
        return product

    @property
    def calls(self) -> int | None:
        """Host calls of a run; None: depends on data."""
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
        """Of each place where the bind stands in the program, how many loops are around it.

        JAX writes the steps of a scan with ``unroll=2`` twice, and those that are left once more.
        """
        found = [0]
        for inside, outside in (step.copies for step in self.steps):
            found = [loops + 1 for loops in found] * inside + found * outside
        return found

    def is_barren(self, platform: str) -> bool:
        """Whether no run on `platform` calls the host this path, whatever the data."""
        return any(level.size == 0 for level in self.levels) or any(
            step.length == 0 or step.reached is False or step.leads_elsewhere(platform)
            for step in self.steps
        )

    def inside_jit(self) -> tuple[Step, ...]:
        """The steps inside the innermost jit: those that were there when the bind was made."""
        places = [place for place, step in enumerate(self.steps) if step.kind == "jit"]
        return self.steps[places[-1] + 1 :] if places else self.steps


def paths(jaxpr: Any) -> list[Path]:
    """Every path to every bind in `jaxpr` that is ours or observed, in program order."""
    found: list[Path] = []
    for path in _walk(jaxpr, (), {}):
        found.append(path)
        if len(found) == MAX_PATHS:
            break
    return found


def sites(jaxpr: Any) -> set[Site]:
    """The sites of all binds in `jaxpr`, also of those that need not be lowered."""
    return {path.bind.site for path in _walk(jaxpr, (), {}, carried=True)}


def _walk(
    jaxpr: Any, steps: tuple[Step, ...], barren: dict[int, Any], carried: bool = False
) -> Iterator[Path]:
    """Goes through all equations, also of jaxprs that are only carried along if `carried`.

    `barren` has the jaxprs, by identity, that are known to have no bind of ours in them.
    """
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    if id(jaxpr) in barren:
        return
    any_found = False
    for equation in jaxpr.eqns:
        params = equation.params
        held = params.get("callback", params.get("fmt"))
        if issubclass(type(held), HostCallback):  # of JAX's own it is anything
            any_found = True
            yield Path(held.bind, params["levels"], len(equation.invars), steps)
            continue
        if is_observing() and is_held(held):
            any_found = True
            yield Path(held.bind, held.levels, len(equation.invars), steps, held.batched)
            continue
        for inner, step in _inner(equation, carried):
            for path in _walk(inner, (*steps, step), barren, carried):
                any_found = True
                yield path
    if not any_found:
        barren[id(jaxpr)] = jaxpr


def _inner(equation: Any, carried: bool) -> Iterator[tuple[Any, Step]]:
    params = equation.params
    name: str = equation.primitive.name
    if name in _JAXS_OWN:
        return
    if name in _LOWERED_PART and not carried:
        yield getattr(params["jaxprs"], _LOWERED_PART[name]), Step(name)
        return
    inners = list(_jaxprs(params.values()))
    if not inners:  # of most equations
        return
    if name == "while":
        yield from ((inner, _while_step(equation, inner)) for inner in inners)
        return
    if name == "cond":
        yield from _branches(equation)
        return
    if name == "scan":
        step = Step("scan", int(params["length"]), unroll=max(1, int(params.get("unroll", 1))))
    else:
        step = Step(_CALLS.get(name, name), again=bool(params.get("differentiated", False)))
    for inner in inners:
        yield inner, step


def _while_step(equation: Any, inner: Any) -> Step:
    predicate = equation.params["cond_jaxpr"]
    (answer,) = getattr(predicate, "out_avals", (None,))
    masks = bool(getattr(answer, "shape", ()))
    if inner is predicate:
        return Step("while", masks=masks, ahead=jax_compat.has_ordered_effects(predicate))
    return Step("while", masks=masks, reached=None if enters(equation) is not False else False)


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
    """The branches of a `jax.lax.platform_dependent`; None stands for all platforms not named."""
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
    """`paths`, grouped."""
    grouped: dict[Bind, list[Path]] = {}
    for path in paths:
        grouped.setdefault(path.bind, []).append(path)
    return grouped
