"""The comparison with JAX notices: every mistake planted here is found among the drawn programs."""

import functools
import itertools
import random

import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.stack import _dispatch, _lanes

from ._compare import OURS, disagreement
from ._programs import sites
from ._shrink import shrunk
from ._strategy import drawn

TRIES = 40  # programs that a mistake has to show itself in


def _found(kinds, table=OURS, concerns=lambda callback: True):
    """(program, disagreement) of the first drawn program that shows one.

    Args:
        kinds: of nests in the programs.
        table: what to compare with JAX.
        concerns: whether a callback may show the mistake; programs with none are passed over.
    """
    programs = (drawn(random.Random(seed), kinds) for seed in itertools.count())
    concerned = (p for p in programs if any(concerns(c) for c, _ in sites(p.block)))
    for program in itertools.islice(concerned, TRIES):
        difference = disagreement(program, table)[1]
        if difference is not None:
            return program, difference
    pytest.fail(f"{TRIES} programs do not show the mistake")


def _skip_the_last(calls):
    return calls[:-1]


def _make_the_first_twice(calls):
    return calls[:1] + calls


def _reverse(calls):
    return calls[::-1]


def _keep(calls):
    return calls


@pytest.mark.parametrize(
    ("visit", "answer"),
    [
        (_skip_the_last, _keep),
        (_make_the_first_twice, _keep),
        (_keep, _reverse),
        (_reverse, _keep),
        (_reverse, _reverse),
    ],
    ids=["one skipped", "one twice", "answers reversed", "arguments reversed", "order reversed"],
)
def test_a_mistake_in_the_loop_over_lanes_is_found(visit, answer, monkeypatch):
    lanes, by_lane = _lanes.LaneSchedule.lanes, _lanes.LaneSchedule.by_lane
    monkeypatch.setattr(
        _lanes.LaneSchedule, "lanes", lambda self, ops: iter(visit(list(lanes(self, ops))))
    )
    monkeypatch.setattr(
        _lanes.LaneSchedule, "by_lane", lambda self, called: by_lane(self, answer(called))
    )
    program, _ = _found(("vmap", "jit"))
    monkeypatch.undo()
    assert _agrees(program)


def _agrees(program):
    return disagreement(program)[1] is None


def _called_twice(callback, *args, **kwargs):
    @functools.wraps(callback)
    def host(*operands, **named):
        callback(*operands, **named)
        return callback(*operands, **named)

    return jaxcb.pure_callback(host, *args, **kwargs)


def _never_refusing(callback, *args, vmap_method, **kwargs):
    method = vmap_method or "sequential"
    return jaxcb.pure_callback(callback, *args, vmap_method=method, **kwargs)


def _tiling(callback, *args, vmap_method, **kwargs):
    method = "broadcast_all" if vmap_method == "expand_dims" else vmap_method
    return jaxcb.pure_callback(callback, *args, vmap_method=method, **kwargs)


def _elidable(callback, *args, ordered, **kwargs):
    return jaxcb.pure_callback(callback, *args, vmap_method="sequential", **kwargs)


def _unordered_io(callback, *args, ordered, **kwargs):
    return jaxcb.io_callback(callback, *args, **kwargs)


def _late(callback, *args, **kwargs):
    """The arguments of the call before."""
    last = []

    def host(*operands, **named):
        last.append((operands, named))
        operands, named = last[max(len(last) - 2, 0)]
        callback(*operands, **named)

    jaxcb.debug_callback(host, *args, **kwargs)


@pytest.mark.parametrize(
    ("kinds", "mistake", "concerns"),
    [
        (("scan", "jit"), {"pure": _called_twice}, lambda c: c.flavor == "pure"),
        (("vmap",), {"pure": _never_refusing}, lambda c: c.flavor == "pure" and c.method is None),
        (("vmap",), {"pure": _tiling}, lambda c: c.method == "expand_dims" and c.literal),
        (("jit", "cond"), {"io": _elidable}, lambda c: c.flavor == "io"),
        (("vmap",), {"io": _unordered_io}, lambda c: c.flavor == "io" and c.ordered),
        (("scan", "fori"), {"debug": _late}, lambda c: c.flavor == "debug"),
    ],
    ids=["called_twice", "never_refusing", "tiling", "elidable", "unordered_io", "late"],
)
def test_a_mistake_in_a_callback_is_found(kinds, mistake, concerns):
    program, _ = _found(kinds, OURS._replace(**mistake), concerns)
    assert _agrees(program)


def test_a_call_missing_from_the_recording_is_found(monkeypatch):
    monkeypatch.setattr(_dispatch, "active", lambda: None)
    program, difference = _found(("jit",))
    assert "calls recorded" in difference
    monkeypatch.undo()
    assert _agrees(program)


def test_a_disagreement_shrinks_to_the_step_that_makes_it():
    table = OURS._replace(pure=_called_twice)

    def shows(program):
        return disagreement(program, table)[1] is not None

    programs = (drawn(random.Random(seed)) for seed in itertools.count())
    large = next(p for p in programs if len(repr(p)) > 1000 and shows(p))
    small = shrunk(large, shows)
    assert len(repr(small)) < len(repr(large)) / 2
    assert small.block[0].flavor == "pure"
