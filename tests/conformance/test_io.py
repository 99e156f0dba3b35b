"""What an io callback promises: it always runs, as often as the program says, in order if asked."""

import math
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jupyter_jaxcb as jaxcb

SCALAR = jax.ShapeDtypeStruct((), np.float32)
FIVE = np.arange(5, dtype=np.float32)
ordered_or_not = pytest.mark.parametrize("ordered", [False, True], ids=["unordered", "ordered"])
eager_or_jit = pytest.mark.parametrize("compiled", [lambda f: f, jax.jit], ids=["eager", "jit"])


def like(x):
    return jax.ShapeDtypeStruct(jnp.shape(x), jnp.result_type(x))


def numbers(seen):
    return [x.item() for (x,) in seen]


@pytest.fixture
def note():
    """``host, seen = note()``: a host function that notes its number and returns it."""

    def make():
        seen = []

        def host(x):
            x = np.array(x)
            seen.append(x.item())
            return x

        return host, seen

    return make


# I1, I2: a random generator on the host


@pytest.fixture
def noise():
    """A host function with state, and a second generator to say what it must answer."""
    generator, twin = np.random.default_rng(0), np.random.default_rng(0)

    def sample(x):
        return generator.standard_normal(np.shape(x), np.float32)

    return sample, lambda shape=(): twin.standard_normal(shape, np.float32)


@eager_or_jit
@ordered_or_not
def test_state_on_the_host_advances_with_every_call(io, spy, run, noise, ordered, compiled):
    """I1: 1 call a run; the values come in sequence."""
    sample, expected = noise
    host, seen = spy(sample)
    f = compiled(io(host, like, ordered=ordered))
    for _ in range(3):
        np.testing.assert_array_equal(run(f, FIVE), expected((5,)))
    assert len(seen) == 3


def test_equal_calls_each_run(io, spy, run, noise):
    """I1: two calls with the same argument are two calls, with two values."""
    sample, expected = noise
    host, seen = spy(sample)
    f = io(host, like, ordered=True)
    first, second = run(jax.jit(lambda x: (f(x), f(x))), FIVE)
    np.testing.assert_array_equal(first, expected((5,)))
    np.testing.assert_array_equal(second, expected((5,)))
    assert len(seen) == 2


@eager_or_jit
def test_vmapped_lanes_are_called_one_by_one_in_lane_order(io, spy, run, noise, compiled):
    """I2: 5 calls of shape ()."""
    sample, expected = noise
    host, seen = spy(sample)
    answer = run(compiled(jax.vmap(io(host, like))), FIVE)
    np.testing.assert_array_equal(answer, [expected() for _ in range(5)])
    assert [x.shape for (x,) in seen] == 5 * [()]
    assert numbers(seen) == [0, 1, 2, 3, 4]


def test_nested_lanes_are_called_in_the_order_of_jax(io, spy, run):
    """I2 over (2, 3): 6 calls, the outermost axis fastest."""
    host, seen = spy(lambda x: x)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    answer = run(jax.jit(jax.vmap(jax.vmap(io(host, like)))), x)
    np.testing.assert_array_equal(answer, x)
    assert numbers(seen) == [0, 3, 1, 4, 2, 5]


def test_zero_lanes_make_zero_calls(our_io, spy, run):
    """I2 over no lane."""
    host, seen = spy(lambda x: x)
    assert run(jax.vmap(our_io(host, like)), np.zeros((0, 2), np.float32)).shape == (0, 2)
    assert seen == []


def test_lanes_keep_their_values_whatever_the_in_axes(io, run):
    """I2: in_axes (1, None): 3 calls, each with its column."""
    seen = []

    def host(x, y):
        seen.append((np.array(x).tolist(), np.array(y).item()))
        return np.asarray(x) + np.asarray(y)

    f = jax.vmap(io(host, lambda x, y: like(x)), in_axes=(1, None), out_axes=1)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(run(jax.jit(f), x, np.float32(10)), x + 10)
    assert seen == [([0.0, 3.0], 10.0), ([1.0, 4.0], 10.0), ([2.0, 5.0], 10.0)]


def test_vmap_without_a_mapped_argument_makes_one_call(io, spy, run, noise):
    """I2: one number for all lanes, as JAX."""
    sample, expected = noise
    host, seen = spy(sample)
    f = io(host, like)
    answer = run(jax.vmap(lambda x: x + f(np.float32(0))), FIVE)
    np.testing.assert_allclose(answer, FIVE + expected(), rtol=1e-6)
    assert len(seen) == 1


# I3: no order under vmap


@eager_or_jit
def test_vmap_refuses_ordered_callbacks(io, spy, compiled):
    """I3: an error while tracing, so no call."""
    host, seen = spy(lambda x: x)
    with pytest.raises(ValueError, match="Cannot `vmap` ordered IO callback"):
        compiled(jax.vmap(io(host, like, ordered=True)))(FIVE)
    assert seen == []


@eager_or_jit
def test_batched_while_predicate_refuses_an_ordered_callback(io, compiled):
    """I3: for the callback itself is not batched, only the number of its calls."""
    seen = []

    def host():
        seen.append(None)
        return np.float32(1)

    one = io(host, SCALAR, ordered=True)

    def count(limit):
        return lax.while_loop(lambda c: c + one() - 1 < limit, lambda c: c + 1, np.float32(0))

    with pytest.raises(Exception, match=r"(?i)ordered IO effects not supported"):
        compiled(jax.vmap(count))(np.float32([1, 3, 2]))
    assert seen == []


# I4: program order


def in_scan(f):
    return lax.scan(lambda c, x: (c, f(x)), 0, FIVE)[1]


def in_fori_loop(f):
    return lax.fori_loop(
        0, 5, lambda i, c: c.at[i].set(f(i.astype(jnp.float32))), jnp.zeros(5, jnp.float32)
    )


def in_while_loop(f):
    def step(carry):
        i, c = carry
        return i + 1, c.at[i].set(f(i.astype(jnp.float32)))

    return lax.while_loop(lambda carry: carry[0] < 5, step, (0, jnp.zeros(5, jnp.float32)))[1]


loops = pytest.mark.parametrize(
    "loop", [in_scan, in_fori_loop, in_while_loop], ids=lambda loop: loop.__name__
)


@eager_or_jit
@ordered_or_not
@loops
def test_loops_call_once_per_step(io, run, note, loop, ordered, compiled):
    """I4: 5 calls, in program order; a loop is a sequence, ordered or not."""
    host, seen = note()
    f = io(host, like, ordered=ordered)
    np.testing.assert_array_equal(run(compiled(lambda: loop(f))), FIVE)
    assert seen == [0, 1, 2, 3, 4]


def test_ordered_callback_in_a_while_predicate_runs_as_often_as_the_predicate(io, run, note):
    """I4: 4 calls for 3 steps."""
    host, seen = note()
    f = io(host, like, ordered=True)
    answer = run(
        jax.jit(lambda n: lax.while_loop(lambda c: f(c) < n, lambda c: c + 1, np.float32(0))), 3.0
    )
    assert answer == 3
    assert seen == [0, 1, 2, 3]


@pytest.mark.parametrize("taken", [True, False])
@ordered_or_not
def test_cond_calls_the_taken_branch_alone(io, run, note, taken, ordered):
    """I4: one call, of the branch that was taken."""
    (yes, yes_seen), (no, no_seen) = note(), note()
    f, g = io(yes, like, ordered=ordered), io(no, like, ordered=ordered)
    answer = run(jax.jit(lambda p, x: lax.cond(p, f, lambda x: -g(x), x)), taken, np.float32(2))
    assert answer == (2 if taken else -2)
    assert (yes_seen, no_seen) == (([2], []) if taken else ([], [2]))


class Overtaking:
    """Host functions "first" and "second": does the second start before the first is done?"""

    def __init__(self):
        self.second_began = threading.Event()
        self.seen = []

    def first(self, x):
        self.second_began.clear()
        overtaken = self.second_began.wait(timeout=0.05)  # gives the second every chance
        self.seen.append(("first", float(x), overtaken))

    def second(self, x):
        self.second_began.set()
        self.seen.append(("second", float(x), False))


def ordered_pair(io, race):
    return io(race.first, None, ordered=True), io(race.second, None, ordered=True)


def test_ordered_callbacks_of_one_program_run_in_program_order(io, run):
    """I4: the second has its operand at hand and still waits for the first."""
    race = Overtaking()
    f, g = ordered_pair(io, race)

    def program(x):
        f(jnp.linalg.norm(jnp.outer(x, x) @ jnp.outer(x, x)) * 0)  # later than g's operand
        g(1.0)
        g(2.0)

    run(jax.jit(program), FIVE)
    assert race.seen == [("first", 0, False), ("second", 1, False), ("second", 2, False)]


def test_ordered_callbacks_of_two_programs_run_in_program_order(io):
    """I4: dispatched without waiting in between."""
    race = Overtaking()
    f, g = ordered_pair(io, race)
    slow = jax.jit(lambda x: f(jnp.linalg.norm(jnp.outer(x, x)) * 0))
    fast = jax.jit(lambda x: g(x))
    for _ in range(3):
        slow(FIVE)
        fast(1.0)
    jax.effects_barrier()
    assert race.seen == 3 * [("first", 0, False), ("second", 1, False)]


def test_eager_ordered_callbacks_run_in_the_order_of_the_lines(io):
    """I4: without jit every line is a program."""
    race = Overtaking()
    f, g = ordered_pair(io, race)
    f(0.0)
    g(1.0)
    g(2.0)
    jax.effects_barrier()
    assert race.seen == [("first", 0, False), ("second", 1, False), ("second", 2, False)]


def test_ordered_callbacks_of_two_inner_jits_and_a_loop_keep_their_order(io, run, note):
    """I4: 1 + 3 + 1 calls."""
    host, seen = note()
    f = io(host, like, ordered=True)

    def program(x):
        jax.jit(f)(x)
        lax.fori_loop(0, 3, lambda i, c: c + f(x + 1 + i), x)
        return jax.jit(lambda x: f(x) * 2)(x + 4)

    assert run(jax.jit(program), np.float32(10)) == 28
    assert seen == [10, 11, 12, 13, 14]


@pytest.mark.parametrize("ours_is_first", [True, False])
def test_ordered_callbacks_of_jax_and_ours_share_one_order(our_io, jax_io, run, ours_is_first):
    """I4: in one program and across programs, whoever comes first."""
    race = Overtaking()
    makers = (our_io, jax_io) if ours_is_first else (jax_io, our_io)
    f, g = (
        make(host, None, ordered=True)
        for make, host in zip(makers, (race.first, race.second), strict=True)
    )

    def program(x):
        f(x)
        g(x + 1)

    run(jax.jit(program), 0.0)
    jax.jit(lambda x: f(x))(0.0)
    jax.jit(lambda x: g(x))(1.0)
    jax.effects_barrier()
    assert race.seen == 2 * [("first", 0, False), ("second", 1, False)]


# I5: under grad


@ordered_or_not
@pytest.mark.parametrize(
    "differentiate",
    [
        lambda f, x: jax.grad(f)(x),
        lambda f, x: jax.jit(jax.grad(f))(x),
        lambda f, x: jax.jvp(f, (x,), (x,)),
        lambda f, x: jax.vjp(f, x),
    ],
    ids=["grad", "jit of grad", "jvp", "vjp"],
)
def test_differentiating_through_it_is_an_error(io, note, differentiate, ordered):
    """I5: no gradient is made up, and nothing runs."""
    host, seen = note()
    f = io(host, like, ordered=ordered)
    with pytest.raises(ValueError, match=r"JVP|differentiate"):
        differentiate(lambda x: f(x) * 2, np.float32(3))
    assert seen == []


def test_error_of_differentiating_names_the_function_and_a_way_out(our_io, note):
    """I5: what to do instead is in the message."""
    host, _ = note()
    with pytest.raises(ValueError, match=r"host.*(stop_gradient|debug|custom_)"):
        jax.grad(lambda x: our_io(host, like)(x) * 2)(np.float32(3))


@ordered_or_not
@pytest.mark.parametrize("compiled", [lambda f: f, jax.jit], ids=["grad", "jit of grad"])
@pytest.mark.parametrize("operand", ["stop_gradient", "another argument", "a constant"])
def test_gradient_passes_where_nothing_differentiated_flows_through_it(
    io, run, note, operand, compiled, ordered
):
    """I5: 1 call, and its value takes part."""
    host, seen = note()
    f = io(host, like, ordered=ordered)

    def loss(w, x):
        chosen = {"stop_gradient": lax.stop_gradient(w), "another argument": x}
        return w * w * f(chosen.get(operand, np.float32(5)))

    value, slope = run(compiled(jax.value_and_grad(loss)), np.float32(3), np.float32(7))
    came = {"stop_gradient": 3, "another argument": 7, "a constant": 5}[operand]
    assert (value, slope) == (9 * came, 6 * came)
    assert seen == [came]


def scan_loss(f, w):
    return lax.scan(lambda c, x: (c * w + f(x), None), w, FIVE)[0]


def scan_loss_unused(f, w):
    def step(c, x):
        f(x)
        return c * w + x, None

    return lax.scan(step, w, FIVE)[0]


def fori_loss_unused(f, w):
    def step(i, c):
        f(i.astype(jnp.float32))
        return c * w + i

    return lax.fori_loop(0, 5, step, w)


def stopped_loss_unused(f, w):
    def step(c, x):
        f(lax.stop_gradient(c * 0) + x)
        return c * w + x, None

    return lax.scan(step, w, FIVE)[0]


def nested_scan_loss(f, w):
    def step(c, x):
        return lax.scan(lambda d, _: (f(x) * 0 + d, None), c, None, 1)[0] * w + x, None

    return lax.scan(step, w, FIVE)[0]


def reference_loss(w):
    """What every one of the losses is, and its derivative, in plain numpy."""
    value, slope = w, 1.0
    for x in FIVE:
        value, slope = value * w + x, slope * w + value
    return value, slope


@ordered_or_not
@pytest.mark.parametrize(
    "loss",
    [scan_loss, fori_loss_unused, stopped_loss_unused, nested_scan_loss],
    ids=lambda loss: loss.__name__,
)
def test_loop_under_grad_calls_as_often_as_without(run, note, loss, ordered):
    """I5: 5 calls each time, in order, where JAX makes none."""
    host, seen = note()
    f = jaxcb.io(result="x", ordered=ordered)(host)
    w = np.float32(0.5)
    value, slope = reference_loss(w)

    def total(w):
        return loss(f, w)

    np.testing.assert_allclose(run(total, w), value, rtol=1e-5)
    assert seen == [0, 1, 2, 3, 4]
    for differentiated in (
        jax.value_and_grad(total),
        jax.jit(jax.value_and_grad(total)),
        lambda w: jax.jvp(total, (w,), (np.float32(1),)),
    ):
        seen.clear()
        np.testing.assert_allclose(run(differentiated, w), (value, slope), rtol=1e-5)
        assert seen == [0, 1, 2, 3, 4]


@ordered_or_not
def test_loop_under_grad_alone_calls_as_often_as_forward(our_io, run, note, ordered):
    """I5: also where the value itself is not asked for."""
    host, seen = note()
    f = our_io(host, like, ordered=ordered)
    w = np.float32(0.5)
    for gradient in (jax.grad, lambda g: jax.jit(jax.grad(g))):
        seen.clear()
        slope = run(gradient(lambda w: scan_loss_unused(f, w)), w)
        np.testing.assert_allclose(slope, reference_loss(w)[1], rtol=1e-5)
        assert seen == [0, 1, 2, 3, 4]


# I6: always once


@eager_or_jit
@ordered_or_not
@pytest.mark.parametrize("operands", [(), (np.float32(2),)], ids=["no operand", "operand"])
@pytest.mark.parametrize("result", [None, (), SCALAR], ids=["None", "empty", "unused"])
def test_callback_runs_once_though_nothing_depends_on_it(
    io, run, result, operands, ordered, compiled
):
    """I6: no arguments, no result, unused result; and once more when run again."""
    seen = []

    def host(*args):
        seen.append(len(args))
        return np.float32(1) if result is SCALAR else result

    f = io(host, result, ordered=ordered)

    def program(x):
        assert jax.tree.structure(f(*operands)) == jax.tree.structure(result)
        return x + 1

    program = compiled(program)
    assert run(program, 1) == 2
    assert seen == [len(operands)]
    assert run(program, 1) == 2
    assert seen == 2 * [len(operands)]


def test_recording_of_an_unused_io_callback_holds_its_call_and_no_elision(our_io, run, note):
    """I6: there is nothing to explain away."""
    host, seen = note()
    f = our_io(host, like)
    with jaxcb.record() as r:
        run(jax.jit(lambda x: (f(x), x)[1]), np.float32(1))
    assert seen == [1]
    (call,) = r.recording.calls_of("host")
    assert r.recording.lowered[call.lowered].site.flavor == "io"
    assert r.recording.elisions == ()


@pytest.mark.parametrize(
    "look",
    [
        lambda f, x: jax.make_jaxpr(f)(x),
        lambda f, x: jax.eval_shape(f, x),
        lambda f, x: jax.jit(f).lower(x).compile(),
    ],
    ids=["make_jaxpr", "eval_shape", "compile"],
)
def test_tracing_and_compiling_call_nothing(io, note, look):
    """I6: it runs when the program runs."""
    host, seen = note()
    look(io(host, like, ordered=True), np.float32(1))
    jax.effects_barrier()
    assert seen == []


# I7: a training loop that logs


@pytest.fixture
def train():
    """``train(f)``: 5 jitted steps of gradient descent on w**2 / 2, ``f(step, loss)`` in each."""

    def trained(f):
        @jax.jit
        def run(w):
            def step(i, w):
                loss, slope = jax.value_and_grad(lambda w: w * w / 2)(w)
                f(i, loss)
                return w - slope / 2

            return lax.fori_loop(0, 5, step, w)

        w = run(np.float32(4))
        jax.effects_barrier()
        return w

    return trained


LOSSES = [8.0, 2.0, 0.5, 0.125, 0.03125]


def test_training_loop_appends_to_a_list_in_order(io, train):
    """I7: 5 calls, all there after the barrier."""
    history = []

    def log(step, loss):
        history.append((int(step), float(loss)))

    assert train(io(log, None, ordered=True)) == 4 / 2**5
    assert history == list(enumerate(LOSSES))


def test_training_loop_writes_a_file_in_order(io, train, tmp_path):
    """I7: 5 lines."""
    path = tmp_path / "loss.csv"

    def log(step, loss):
        with open(path, "a") as file:
            file.write(f"{int(step)},{float(loss)}\n")

    assert train(io(log, None, ordered=True)) == 4 / 2**5
    assert path.read_text().splitlines() == [f"{i},{loss}" for i, loss in enumerate(LOSSES)]


def test_training_loop_drives_a_progress_bar(io, train):
    """I7: an object with state, through a bound method; 5 calls."""

    class Bar:
        def __init__(self):
            self.shown = ""

        def update(self, step, loss):
            assert math.isfinite(loss)
            self.shown += f"[{'#' * (int(step) + 1):<5}]"

    bar = Bar()
    assert train(io(bar.update, None, ordered=True)) == 4 / 2**5
    assert bar.shown == "[#    ][##   ][###  ][#### ][#####]"
