"""Under vmap, a call in a branch or loop is made for the batch elements that reach it.

The calls of ``vmap(f)(xs)`` are those of ``[f(x) for x in xs]``, with the same arguments and as
often; a pure function may be called less often, but not more often.
"""

import collections

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jupyter_jaxcb as jaxcb

INTEGER = jax.ShapeDtypeStruct((), np.int32)
XS = jnp.arange(6, dtype=jnp.int32)
GRID = jnp.arange(12, dtype=jnp.int32).reshape(3, 4)
CALLS = collections.Counter()


def host(name, flavor):
    """Return a callback that counts its calls by argument, and one that returns its argument."""

    def function(*args):
        CALLS[name, *(float(x) for x in args)] += 1
        return np.int32(3 * int(args[0]) + 1)

    if flavor == "debug":

        def look(*args):
            function(*args)

        look.__name__ = name
        show = jaxcb.debug(look)
        return lambda x, *more: (show(x, *more), 3 * x + 1)[1]
    function.__name__ = name
    return getattr(jaxcb, flavor)(function, result=INTEGER)


@pytest.fixture(autouse=True, scope="module")
def _silent():
    with pytest.warns(jaxcb.ImpureFunctionWarning):
        jaxcb.pure(lambda x: CALLS.clear() or x, result="x")
    yield


def count(f, *args):
    CALLS.clear()
    results = jax.tree.map(np.asarray, jax.block_until_ready(f(*args)))
    jax.effects_barrier()
    return results, collections.Counter(CALLS)


def one_by_one(f, xs):
    found = [count(jax.jit(f), *(x[n] for x in xs)) for n in range(len(xs[0]))]
    results = jax.tree.map(lambda *rows: np.stack(rows), *[each for each, _ in found])
    return results, sum((calls for _, calls in found), collections.Counter())


def steps(x, body, most=4):
    """Return ``most`` % x steps of `body`."""
    last = lax.while_loop(lambda s: s[1] < x % most, lambda s: (body(s[0]) % 7, s[1] + 1), (x, 0))
    return last[0]


def programs(a, b, c):
    """Return programs of one integer, by name, that call `a`, `b` and `c`."""
    inner = jax.vmap(lambda y: lax.cond(y % 2 == 0, a, b, y))

    def in_scan(x):
        return lax.scan(lambda s, i: (a(s + i) % 11, b(s)), x, jnp.arange(3))

    def of_two(x):
        return lax.while_loop(
            lambda s: (b(s[0]) >= 0) & (s[1] < x % 3),
            lambda s: (b(a(s[0])) % 7, s[1] + 1),
            (x, 0),
        )[0]

    def becomes_batched(x):
        def body(s):
            return s[0] + 1 + s[1] % 2, b(s[1] + x) % 7

        return lax.while_loop(lambda s: s[0] < 5, body, (0, 0))[1]

    @jax.custom_jvp
    def ruled(x):
        return a(x)

    ruled.defjvp(lambda primals, tangents: (a(*primals), tangents[0]))
    return {
        "cond": lambda x: lax.cond(x % 3 == 0, a, lambda x: b(x) + c(x), x),
        "a branch without a call": lambda x: lax.cond(x > 3, a, lambda x: x, x),
        "switch": lambda x: lax.switch(x % 3, [a, lambda x: b(x) + 1, c], x),
        "index out of range": lambda x: lax.switch(x - 2, [a, lambda x: b(x) + 1, c], x),
        "while": lambda x: steps(x, a),
        "calls in predicate and body": of_two,
        "predicate that is batched later": becomes_batched,
        "steered by the host": lambda x: lax.while_loop(
            lambda x: a(x) % 4 != 0, lambda x: x + 1 + 0 * c(x), x
        ),
        "fori": lambda x: lax.fori_loop(x % 2, x % 4, lambda i, s: b(s + i) % 7, x),
        "cond in while": lambda x: steps(x, lambda s: lax.cond(s % 2 == 0, a, b, s)),
        "while in cond": lambda x: lax.cond(x % 2 == 0, lambda x: steps(x, a), b, x),
        "loop of the host in a branch": lambda x: lax.cond(
            x > 3,
            lambda x: lax.while_loop(lambda x: a(x) % 4 != 0, lambda x: x + 1, x),
            lambda x: x,
            x,
        ),
        "loop until a result, in a branch": lambda x: lax.cond(
            x > 3,
            lambda x: lax.while_loop(lambda s: s[0] != s[1], lambda s: (s[0] + 1, s[1]), (1, a(x)))[
                0
            ],
            lambda x: x,
            x,
        ),
        "cond in jit in scan": lambda x: lax.scan(
            lambda s, i: (jax.jit(lambda s: lax.cond(s % 2 == 0, a, b, s) % 11)(s), s),
            x,
            jnp.arange(3),
        ),
        "scan in jit in cond": lambda x: lax.cond(
            x % 2 == 0, lambda x: jax.jit(in_scan)(x)[1].sum(), c, x
        ),
        "cond in cond": lambda x: lax.cond(x % 2 == 0, lambda x: lax.cond(x > 2, a, b, x), c, x),
        "vmap in a branch": lambda x: lax.cond(
            x % 2 == 0, lambda x: inner(x + jnp.arange(3)).sum(), c, x
        ),
        "vmap in a loop": lambda x: steps(x, lambda s: inner(s + jnp.arange(2)).sum()),
        "checkpoint": lambda x: lax.cond(x % 2 == 0, jax.checkpoint(lambda x: a(x) + b(x)), c, x),
        "custom_jvp": lambda x: lax.cond(x % 2 == 0, ruled, b, x),
        "piecewise": lambda x: jnp.piecewise(x, [x < 2, x > 3], [a, b, c]),
        "two arguments": lambda x: lax.cond(x > 2, lambda x: a(x, 2 * x), lambda x: x, x),
    }


NAMES = list(programs(*[lambda x, *_: x] * 3))
AROUND = {
    "eager": jax.vmap,
    "jit of vmap": lambda f: jax.jit(jax.vmap(f)),
    "vmap of jit": lambda f: jax.vmap(jax.jit(f)),
}


@pytest.mark.kept
@pytest.mark.filterwarnings("ignore::jupyter_jaxcb.ImpureFunctionWarning")
@pytest.mark.parametrize("around", AROUND.values(), ids=AROUND)
@pytest.mark.parametrize("flavor", ["io", "debug", "pure"])
@pytest.mark.parametrize("name", NAMES)
def test_calls_are_those_of_the_elements_one_by_one(name, flavor, around):
    f = programs(*(host(each, flavor) for each in "abc"))[name]
    wanted, asked = one_by_one(f, [XS])
    results, made = count(around(f), XS)
    jax.tree.map(np.testing.assert_array_equal, results, wanted)
    if flavor == "pure":
        in_eager = around is jax.vmap  # where nothing removes what is not used
        assert made.keys() >= asked.keys() if in_eager else made <= asked
    else:
        assert made == asked
    assert asked


AUTO, EXPLICIT = (
    jax.make_mesh((1,), ("d",), axis_types=(kind,))
    for kind in (jax.sharding.AxisType.Auto, jax.sharding.AxisType.Explicit)
)
SHARD = jax.sharding.PartitionSpec("d")


def in_shard_map(f):
    return jax.shard_map(f, mesh=AUTO, in_specs=SHARD, out_specs=SHARD)


def with_explicit_axes(f):
    return lambda xs: f(jax.device_put(xs, jax.sharding.NamedSharding(EXPLICIT, SHARD)))


@pytest.mark.parametrize("on_mesh", [in_shard_map, with_explicit_axes])
@pytest.mark.parametrize("flavor", ["pure", "debug", "io"])
@pytest.mark.parametrize("construct", ["cond", "while"])
def test_where_types_name_axes_of_a_mesh_the_rules_of_jax_stay(construct, flavor, on_mesh):
    CALLS.clear()
    f = host("f", flavor)
    programs = {
        "cond": lambda x: lax.cond(x > 3, f, lambda x: x, x),
        "while": lambda x: lax.while_loop(lambda x: x < 9, f, x),
    }
    program = on_mesh(jax.vmap(programs[construct]))
    if flavor == "io":
        with pytest.raises(NotImplementedError, match=r"cannot vmap f@.* on a mesh"):
            jax.jit(program)(XS)
        return
    expected = {"cond": [0, 1, 2, 3, 13, 16], "while": [13, 13, 22, 10, 13, 16]}[construct]
    np.testing.assert_array_equal(jax.jit(program)(XS), expected)
    jax.effects_barrier()
    assert CALLS.total() == len(XS) * (1 if construct == "cond" else 3)
