"""What is worth knowing of a site's calls: what each program says of them, and what they cost.

The same in every run: times are elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..recording import Compilation, NotFinite, Outcome, Recording, Site

MANY = 100  # host calls that one line makes in a program
LISTED = 3  # arguments of compilations that are named


def site_notes(
    recording: Recording, site: Site, outcomes: Sequence[Outcome], numbers: Sequence[int]
) -> tuple[str, ...]:
    """One sentence for each thing.

    Args:
        recording: where it happened.
        site: the site.
        outcomes: of it.
        numbers: of it among `Recording.lowered`.
    """
    programs = {outcome.program for outcome in outcomes}
    compilations = [one for one in recording.compilations if one.program in programs]
    found = [note for outcome in outcomes for note in outcome.notes]
    found += [_unrolled(recording, site, outcome.instructions) for outcome in outcomes]
    found += _retraces(compilations)
    found += [_not_cached(recording)] * any(one.not_cached for one in compilations)
    found += [_not_finite(fact) for fact in recording.not_finite if fact.lowered in numbers]
    return tuple(dict.fromkeys(filter(None, found)))


def _unrolled(recording: Recording, site: Site, instructions: int) -> str:
    methods = {
        level.method for fact in recording.lowered if fact.site == site for level in fact.levels
    }
    if instructions < MANY or "sequential_unrolled" not in methods:
        return ""
    return (
        f"{instructions:,} calls in the program, one for each lane: slow to compile; "
        'vmap_method="sequential" calls for the same lanes in one crossing'
    )


def _retraces(compilations: Sequence[Compilation]) -> list[str]:
    """Why the programs of one name were compiled several times."""
    found = []
    for name in dict.fromkeys(one.program.name for one in compilations):
        own = [one for one in compilations if one.program.name == name]
        arguments = list(dict.fromkeys(one.arguments for one in own))
        functions = {one.function for one in own}
        if len(own) < 2:
            continue
        if len(arguments) == len(own):
            words = [f"({', '.join(map(str, avals))})" for avals in arguments[:LISTED]]
            more = [f"{len(arguments) - LISTED} more"] * (len(arguments) > LISTED)
            found.append(f"{name} was compiled {len(own)} times, for {', '.join([*words, *more])}")
        elif len(functions) == len(own) or functions == {0}:
            found.append(
                f"{name} was compiled {len(own)} times, for another function object each time: "
                "define it, and jit it, once, outside of the loop"
            )
        else:
            found.append(f"{name} was compiled {len(own)} times")
    return found


def _not_cached(recording: Recording) -> str:
    version = recording.environment.get("jax", "")
    return (
        "its program is compiled in every process: the persistent compilation cache of JAX "
        f"{version} takes no program with host callbacks".replace("  ", " ")
    )


def _not_finite(fact: NotFinite) -> str:
    words = []
    if fact.produced:
        words.append(f"{_calls(fact.produced)} answered NaN or infinity for finite arguments")
    if fact.passed_on:
        words.append(f"{_calls(fact.passed_on)} answered NaN or infinity, and were given some")
    return "; ".join(words)


def _calls(count: int) -> str:
    return f"{count:,} call{'' if count == 1 else 's'}"
