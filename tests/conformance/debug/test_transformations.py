"""Under every transformation a debug callback makes the same host calls as JAX's."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jupyter_jaxcb as jaxcb
from tests.conformance._parameters import FIVE_FROM_1, TWO, eager_or_jit
from tests.conformance.conftest import DEBUG
from tests.interface import leave_loops_to_jax
from tests.lines import lines


def watching(f):
    """Return a function that squares x and passes x to the debug callback `f`."""

    def square(x):
        f(x)
        return x * x

    return square


def custom_jvp(f):
    @jax.custom_jvp
    def square(x):
        f(x)
        return x * x

    @square.defjvp
    def rule(primals, tangents):
        (x,), (dx,) = primals, tangents
        f(x + 100)
        return square(x), 2 * x * dx

    return square


def custom_vjp(f):
    @jax.custom_vjp
    def square(x):
        f(x)
        return x * x

    def forward(x):
        f(x + 100)
        return square(x), x

    def backward(x, ct):
        f(x + 200)
        return (2 * x * ct,)

    square.defvjp(forward, backward)
    return square


def scan(f, xs):
    def step(c, x):
        f(x)
        return c * x, c

    return lax.scan(step, jnp.ones_like(xs[0]), xs)[0]


def fori(f, x, count=3):
    def step(i, c):
        f(c)
        return c * x

    return lax.fori_loop(0, count, step, jnp.ones_like(x))


def while_body(f, x):
    def step(c):
        f(c)
        return c + 1

    return lax.while_loop(lambda c: c < 4, step, x)


def while_predicate(f, x):
    def more(c):
        f(c)
        return c < 4

    return lax.while_loop(more, lambda c: c + 1, x)


def cond(f, x):
    def yes(x):
        f(x)
        return x + 1

    def no(x):
        f(-x)
        return x - 1

    return lax.cond(x > 1, yes, no, x)


KEEP_NONE = jax.checkpoint_policies.nothing_saveable
KEEP_ALL = jax.checkpoint_policies.everything_saveable
PROGRAMS = {
    "jit": lambda f: jax.jit(watching(f))(TWO),
    "inner jit": lambda f: jax.jit(lambda x: jax.jit(watching(f))(x) + jax.jit(watching(f))(x))(
        TWO
    ),
    "vmap": lambda f: jax.vmap(watching(f))(FIVE_FROM_1),
    "jit of vmap": lambda f: jax.jit(jax.vmap(watching(f)))(FIVE_FROM_1),
    "vmap of vmap": lambda f: jax.vmap(jax.vmap(watching(f)))(FIVE_FROM_1[:4].reshape(2, 2)),
    "vmap, unbatched": lambda f: jax.vmap(lambda x: x + watching(f)(TWO))(FIVE_FROM_1),
    "grad": lambda f: jax.grad(watching(f))(TWO),
    "jit of grad": lambda f: jax.jit(jax.grad(watching(f)))(TWO),
    "value_and_grad": lambda f: jax.value_and_grad(watching(f))(TWO),
    "vmap of grad": lambda f: jax.vmap(jax.grad(watching(f)))(FIVE_FROM_1),
    "hessian": lambda f: jax.hessian(watching(f))(TWO),
    "jvp": lambda f: jax.jvp(watching(f), (TWO,), (TWO,)),
    "jit of jvp": lambda f: jax.jit(lambda x: jax.jvp(watching(f), (x,), (x,)))(TWO),
    "vjp": lambda f: jax.vjp(watching(f), TWO)[1](TWO),
    "linearize": lambda f: jax.linearize(watching(f), TWO)[1](TWO),
    "remat": lambda f: jax.checkpoint(watching(f))(TWO),
    "grad of remat": lambda f: jax.grad(jax.checkpoint(watching(f)))(TWO),
    "grad of remat keeping nothing": lambda f: jax.grad(
        jax.checkpoint(lambda x: jnp.sin(watching(f)(x)), policy=KEEP_NONE)
    )(TWO),
    "jit of grad of remat keeping all": lambda f: jax.jit(
        jax.grad(jax.checkpoint(lambda x: jnp.sin(watching(f)(x)), policy=KEEP_ALL))
    )(TWO),
    "custom_jvp": lambda f: custom_jvp(f)(TWO),
    "grad of custom_jvp": lambda f: jax.grad(custom_jvp(f))(TWO),
    "jit of grad of custom_jvp": lambda f: jax.jit(jax.grad(custom_jvp(f)))(TWO),
    "jvp of custom_jvp": lambda f: jax.jvp(custom_jvp(f), (TWO,), (TWO,)),
    "vmap of custom_jvp": lambda f: jax.vmap(custom_jvp(f))(FIVE_FROM_1),
    "custom_vjp": lambda f: custom_vjp(f)(TWO),
    "grad of custom_vjp": lambda f: jax.grad(custom_vjp(f))(TWO),
    "jit of grad of custom_vjp": lambda f: jax.jit(jax.grad(custom_vjp(f)))(TWO),
    "vmap of grad of custom_vjp": lambda f: jax.vmap(jax.grad(custom_vjp(f)))(FIVE_FROM_1),
    "scan": lambda f: scan(f, FIVE_FROM_1),
    "jit of scan": lambda f: jax.jit(lambda x: scan(f, x))(FIVE_FROM_1),
    "vmap of scan": lambda f: jax.vmap(lambda x: scan(f, x))(FIVE_FROM_1[:4].reshape(2, 2)),
    "grad of scan": lambda f: jax.grad(lambda x: scan(f, x))(FIVE_FROM_1),
    "jit of grad of scan": lambda f: jax.jit(jax.grad(lambda x: scan(f, x)))(FIVE_FROM_1),
    "grad of remat of scan": lambda f: jax.grad(jax.checkpoint(lambda x: scan(f, x)))(FIVE_FROM_1),
    "loop of length 0": lambda f: fori(f, TWO, 0),
    "fori_loop": lambda f: fori(f, TWO),
    "grad of fori_loop": lambda f: jax.grad(lambda x: fori(f, x))(TWO),
    "while body": lambda f: while_body(f, TWO),
    "vmap of while body": lambda f: jax.vmap(lambda x: while_body(f, x))(FIVE_FROM_1),
    "jvp of while body": lambda f: jax.jvp(lambda x: while_body(f, x), (TWO,), (TWO,)),
    "while predicate": lambda f: while_predicate(f, TWO),
    "vmap of while predicate": lambda f: jax.vmap(lambda x: while_predicate(f, x))(FIVE_FROM_1),
    "jvp of while predicate": lambda f: jax.jvp(lambda x: while_predicate(f, x), (TWO,), (TWO,)),
    "cond, taken": lambda f: cond(f, TWO),
    "cond, not taken": lambda f: cond(f, TWO - 2),
    "grad of cond": lambda f: jax.grad(lambda x: cond(f, x))(TWO),
    "jit of grad of cond": lambda f: jax.jit(jax.grad(lambda x: cond(f, x)))(TWO),
    "vmap of cond": lambda f: jax.vmap(lambda x: cond(f, x))(FIVE_FROM_1),
}
# Programs for which JAX returns wrong numbers if the callback is ordered.
WRONG_IN_JAX = {"vmap of while predicate"}


def outcome(make, note, program, ordered):
    """Return the program's value, or the class of its error, and the recorded host calls."""
    host, seen = note()
    try:
        value = jax.block_until_ready(program(make(host, ordered=ordered)))
    except Exception as error:
        jax.effects_barrier()
        return type(error), seen
    jax.effects_barrier()
    return jax.tree.map(np.asarray, value), seen


@pytest.mark.long
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_calls_are_the_same_as_with_jax(jax_debug, note, name):
    """The calls are unordered, so both lists are sorted before they are compared."""
    value, seen = outcome(DEBUG["drop-in"], note, PROGRAMS[name], ordered=False)
    expected, jax_seen = outcome(jax_debug, note, PROGRAMS[name], ordered=False)
    jax.tree.map(np.testing.assert_array_equal, value, expected)
    assert sorted(seen) == sorted(jax_seen)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in WRONG_IN_JAX])
def test_values_and_calls_of_ordered_callbacks_are_the_same_as_with_jax(jax_debug, note, name):
    """Either the calls are in the same order, or both raise an error of the same class."""
    value, seen = outcome(DEBUG["drop-in"], note, PROGRAMS[name], ordered=True)
    expected, jax_seen = outcome(jax_debug, note, PROGRAMS[name], ordered=True)
    if isinstance(expected, type):
        assert value is expected
    else:
        jax.tree.map(np.testing.assert_array_equal, value, expected)
    assert seen == jax_seen


LIMITS = np.float32([1, 3, 2])


def counting(look):
    """Return a function that counts to its limit and calls `look` in the predicate of its loop."""

    def count(limit):
        def more(c):
            look(c)
            return c < limit

        return lax.while_loop(more, lambda c: c + 1, np.float32(0))

    return count


@eager_or_jit
def test_ordered_callback_in_a_batched_while_predicate_runs_as_in_jax_but_with_correct_numbers(
    jax_debug, our_debug, note, compiled
):
    """JAX's own callback keeps counting in batch elements that have finished.

    A decorated one is not called for these.
    """

    def run(make):
        host, seen = note()
        result = compiled(jax.vmap(counting(make(host, ordered=True))))(LIMITS)
        jax.block_until_ready(result), jax.effects_barrier()
        return result, seen

    (result, seen), (_, jax_seen) = run(our_debug), run(jax_debug)
    np.testing.assert_array_equal(result, LIMITS)
    running = [step <= limit for step in range(4) for limit in LIMITS]
    of_running = list(itertools.compress(jax_seen, running))
    if our_debug is DEBUG["decorator"]:
        assert seen == of_running
        return
    assert seen == [min(step, limit) for step in range(4) for limit in LIMITS]
    assert len(seen) == len(jax_seen)
    assert list(itertools.compress(seen, running)) == of_running


def test_ordered_print_in_a_batched_while_predicate_prints_what_jax_prints(capsys):
    """All batch elements finish at the same time, so JAX's numbers are correct too."""

    def printed(debug_print):
        look = lambda c: debug_print("at {}", c, ordered=True)  # noqa: E731
        result = jax.vmap(counting(look))(np.float32([2, 2]))
        jax.block_until_ready(result), jax.effects_barrier()
        return result.tolist(), capsys.readouterr().out

    assert printed(jaxcb.debug_print) == printed(jax.debug.print)
    assert printed(jaxcb.debug_print) == (
        [2, 2],
        "".join(f"at {n}.0\n" for n in (0, 0, 1, 1, 2, 2)),
    )


INSIDE = {
    "jit": jax.jit,
    "checkpoint": jax.checkpoint,
    "cond": lambda f: lambda x: lax.cond(True, f, lambda x: None, x),
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (c, f(x)), 0, length=1),
    "custom_jvp": custom_jvp,
    "custom_vjp": custom_vjp,
    "while predicate": lambda f: lambda x: while_predicate(f, x + 4),
}


@pytest.mark.parametrize("inside", INSIDE.values(), ids=INSIDE)
def test_ordered_callback_anywhere_in_a_batched_while_predicate_leaves_the_numbers_correct(
    our_debug, note, run, inside
):
    host, seen = note()
    f = jax.jit(jax.vmap(counting(inside(our_debug(host, ordered=True)))))
    np.testing.assert_array_equal(run(f, LIMITS), LIMITS)
    reached = 9 if our_debug is DEBUG["decorator"] else 12  # those that have not finished
    assert len(seen) == reached


def test_ordered_callback_in_a_batched_while_predicate_is_reported_kept(our_debug, note):
    host, seen = note()
    f = jax.jit(jax.vmap(counting(our_debug(host, ordered=True))))
    with jaxcb.record() as r:
        jax.block_until_ready(f(LIMITS))
    assert [line.status for line in lines(r.recording)] == ["kept"]
    reached = 9 if our_debug is DEBUG["decorator"] else 12
    assert len(r.recording) == len(seen) == reached


@pytest.mark.parametrize("beside", ["nothing", "an unordered callback of ours"])
def test_loop_whose_ordered_callbacks_are_jaxs_own_keeps_jaxs_lowering(
    jax_debug, our_debug, note, beside
):
    host, _ = note()
    calls = [jax_debug(host, ordered=True)]
    if beside != "nothing":
        calls.append(our_debug(host))

    def lowered():
        count = counting(lambda c: [call(c) for call in calls])
        return jax.jit(jax.vmap(count)).lower(LIMITS).as_text()

    leave_loops_to_jax()
    before = lowered()
    our_debug(host, ordered=True)(TWO)  # installs our rule for loops
    assert lowered() == before


def test_loop_that_is_left_to_jax_is_refused_before_any_call(note):
    """Unloading the extension leaves all loops to JAX, which would compute wrong numbers."""
    host, seen = note()
    traced = jax.jit(jax.vmap(counting(DEBUG["drop-in"](host, ordered=True)))).trace(LIMITS)
    leave_loops_to_jax()
    with pytest.raises(NotImplementedError, match="wrong results for finished batch elements"):
        traced.lower()
    assert seen == []
