"""The comparison with JAX finds every mistake planted in a callback."""

import functools
import itertools
import random

import jax
import pytest

import jupyter_jaxcb as jaxcb

from ._compare import OURS, disagreement
from ._planted import agrees, first_disagreement
from ._programs import sites
from ._shrink import shrunk
from ._strategy import drawn

pytestmark = pytest.mark.fuzz


def _called_twice(callback, *args, **kwargs):
    @functools.wraps(callback)
    def host(*operands, **named):
        callback(*operands, **named)
        return callback(*operands, **named)

    return jaxcb.pure_callback(host, *args, **kwargs)


def _called_once(callback, *args, **kwargs):
    returned_values = []

    @functools.wraps(callback)
    def host(*operands, **named):
        if not returned_values:
            returned_values.append(callback(*operands, **named))
        return returned_values[0]

    return jaxcb.io_callback(host, *args, **kwargs)


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
    """Pass the arguments of the previous call."""
    last = []

    def host(*operands, **named):
        last.append((operands, named))
        operands, named = last[max(len(last) - 2, 0)]
        callback(*operands, **named)

    jaxcb.debug_callback(host, *args, **kwargs)


def _of_another():
    """Make an io callback that returns the last result of another one with the same declaration."""
    returned_values = {}

    def io(callback, declared, *args, **kwargs):
        @functools.wraps(callback)
        def host(*operands, **named):
            last, returned_values[str(declared)] = (
                returned_values.get(str(declared)),
                callback(*operands, **named),
            )
            return returned_values[str(declared)] if last is None else last

        return jaxcb.io_callback(host, declared, *args, **kwargs)

    return io


def _of_another_dtype(callback, declared, *args, **kwargs):
    widest = jaxcb.pure_callback(callback, declared, *args, **kwargs)
    return jax.tree.map(lambda x: x + 0.0 if x.dtype != bool else x, widest)


def _as_a_tuple(callback, declared, *args, **kwargs):
    return tuple(jax.tree.leaves(jaxcb.pure_callback(callback, declared, *args, **kwargs)))


def _is_pure(callback):
    return callback.flavor == "pure"


@pytest.mark.parametrize(
    ("kinds", "mistake", "may_show"),
    [
        (("scan", "jit"), {"pure": _called_twice}, _is_pure),
        (("scan", "jit"), {"io": _called_once}, lambda c: c.flavor == "io"),
        (("vmap",), {"pure": _never_refusing}, lambda c: _is_pure(c) and c.method is None),
        (("vmap",), {"pure": _tiling}, lambda c: c.method == "expand_dims" and c.literal),
        (("jit", "cond"), {"io": _elidable}, lambda c: c.flavor == "io"),
        (("vmap",), {"io": _unordered_io}, lambda c: c.flavor == "io" and c.ordered),
        (("scan", "fori"), {"debug": _late}, lambda c: c.flavor == "debug"),
        (("jit",), {"io": _of_another()}, lambda c: c.flavor == "io" and c.used and c.results),
        (("jit",), {"pure": _of_another_dtype}, lambda c: _is_pure(c) and "n" in c.results),
        (("jit",), {"pure": _as_a_tuple}, lambda c: _is_pure(c) and c.outputs != 0),
    ],
    ids=[
        "called_twice", "called_once", "never_refusing", "tiling", "elidable", "unordered_io",
        "late", "of_another", "of_another_dtype", "as_a_tuple",
    ],
)  # fmt: skip
def test_mistake_in_a_callback_is_found(kinds, mistake, may_show):
    table = OURS._replace(**mistake)
    program, _ = first_disagreement(kinds, table, lambda callbacks: any(map(may_show, callbacks)))
    assert agrees(program)


def test_program_with_a_disagreement_shrinks_to_the_step_that_causes_it():
    table = OURS._replace(pure=_called_twice)

    def shows(program):
        return disagreement(program, table)[1] is not None

    programs = (drawn(random.Random(seed)) for seed in itertools.count())
    large = next(p for p in programs if len(repr(p)) > 700 and shows(p))
    small = shrunk(large, shows)
    assert len(repr(small)) < len(repr(large)) / 2
    ((callback, _),) = sites(small.block)
    assert callback.flavor == "pure"
