"""Through which loops, branches and calls a traced program reaches our binds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ..recording import Site
from ._callback import Bind, HostCallback
from ._observed import is_held, is_observing

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
    masks: bool = False  # a while whose predicate is mapped: lanes that finished go on
    platform: bool = False  # a cond that chooses by the platform


class Path(NamedTuple):
    """One way in which a program reaches a bind."""

    bind: Bind
    levels: tuple[Any, ...]  # the vmaps of the bind there
    operands: int  # how many arrays it gets
    steps: tuple[Step, ...]  # outermost first
    mapped: bool = False  # by a vmap whose lanes JAX loops over itself

    @property
    def lanes(self) -> int:
        """Host calls of each crossing."""
        product = 1
        for level in self.levels:
            product *= level.size if level.looped else 1
        return product

    @property
    def calls(self) -> int | None:
        """Host calls of a run; None: depends on data."""
        product = self.lanes
        for step in self.steps:
            if step.kind in ("while", "cond"):
                return None
            product *= 1 if step.length is None else step.length
        return product

    @property
    def loops(self) -> int:
        """Loops around the bind that may run it more than once."""
        return sum(s.kind == "while" or (s.length or 0) > 1 for s in self.steps)

    def inside_jit(self) -> tuple[Step, ...]:
        """The steps inside the innermost jit: those that were there when the bind was made."""
        places = [place for place, step in enumerate(self.steps) if step.kind == "jit"]
        return self.steps[places[-1] + 1 :] if places else self.steps


def paths(jaxpr: Any) -> list[Path]:
    """Every way to every bind in `jaxpr` that is ours or observed, in program order."""
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
            yield Path(held.bind, held.levels, len(equation.invars), steps, held.mapped)
            continue
        for inner, step in _inner(equation, jaxpr, carried):
            for path in _walk(inner, (*steps, step), barren, carried):
                any_found = True
                yield path
    if not any_found:
        barren[id(jaxpr)] = jaxpr


def _inner(equation: Any, outer: Any, carried: bool) -> Iterator[tuple[Any, Step]]:
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
    if name == "scan":
        step = Step("scan", int(params["length"]))
    elif name == "while":
        (predicate,) = getattr(params["cond_jaxpr"], "out_avals", (None,))
        step = Step("while", masks=bool(getattr(predicate, "shape", ())))
    elif name == "cond":
        index = equation.invars[0]
        by_platform = any(
            e.primitive.name == "platform_index" and index in e.outvars for e in outer.eqns
        )
        step = Step("cond", platform=by_platform)
    else:
        step = Step(_CALLS.get(name, name))
    for inner in inners:
        yield inner, step


def _jaxprs(parameters: Any) -> Iterator[Any]:
    for value in parameters:
        if type(value) in _PLAIN:
            continue
        if hasattr(value, "eqns") or hasattr(getattr(value, "jaxpr", None), "eqns"):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from _jaxprs(value)


def by_bind(ways: list[Path]) -> dict[Bind, list[Path]]:
    """`ways`, grouped."""
    grouped: dict[Bind, list[Path]] = {}
    for path in ways:
        grouped.setdefault(path.bind, []).append(path)
    return grouped
