"""What a debug callback promises: it looks on, is called as JAX calls it, and changes nothing."""

import contextlib
import functools
import io as streams
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jupyter_jaxcb as jaxcb

FIVE = np.arange(1, 6, dtype=np.float32)
TWO = np.float32(2)
eager_or_jit = pytest.mark.parametrize("compiled", [lambda f: f, jax.jit], ids=["eager", "jit"])
ordered_or_not = pytest.mark.parametrize("ordered", [False, True], ids=["unordered", "ordered"])


@pytest.fixture
def note():
    """``host, seen = note()``: a host function that notes its one number."""

    def make():
        seen = []
        return lambda x: seen.append(np.array(x).item()), seen

    return make


# D1: under jit


@eager_or_jit
@ordered_or_not
def test_callback_sees_the_value_of_every_run(debug, run, note, ordered, compiled):
    """D1: 1 call a run, with the value at run time; the result does not change."""
    host, seen = note()
    f = debug(host, ordered=ordered)

    @compiled
    def program(x):
        f(x * x)
        return x + 1

    for number in (1, 2, 3):
        assert run(program, np.float32(number)) == number + 1
    assert seen == [1, 4, 9]


@ordered_or_not
def test_callback_without_operands_runs_once_a_run(debug, run, ordered):
    """D1: nothing but the effect."""
    seen = []
    f = debug(lambda: seen.append(None), ordered=ordered)
    program = jax.jit(lambda x: (f(), x)[1])
    run(program, 1)
    run(program, 1)
    assert len(seen) == 2


@pytest.mark.parametrize(
    "answer", [None, 3, "text", np.ones(3)], ids=["None", "3", "text", "array"]
)
def test_answer_of_the_host_function_is_ignored(debug, run, answer):
    """D1: whatever it is; 1 call."""
    seen = []

    def host(x):
        seen.append(x)
        return answer

    f = debug(host)
    assert f(TWO) is None
    run(jax.jit(lambda x: f(x)), TWO)
    assert len(seen) == 2


def test_ordered_callbacks_run_in_program_order(debug):
    """D1: the second does not start before the first is done, in one program and across two."""
    second_began, seen = threading.Event(), []

    def first(x):
        second_began.clear()
        overtaken = second_began.wait(timeout=0.05)  # gives the second every chance
        seen.append(("first", float(x), overtaken))

    def second(x):
        second_began.set()
        seen.append(("second", float(x), False))

    f, g = debug(first, ordered=True), debug(second, ordered=True)

    def program(x):
        f(jnp.linalg.norm(jnp.outer(x, x)) * 0)  # later than g's operand
        g(1.0)

    jax.jit(program)(FIVE)
    jax.jit(program)(FIVE)
    jax.jit(lambda x: f(x))(2.0)
    jax.jit(lambda x: g(x))(3.0)
    jax.effects_barrier()
    assert seen == [
        *2 * [("first", 0, False), ("second", 1, False)],
        ("first", 2, False),
        ("second", 3, False),
    ]


# D2: transformations and control flow


def watching(f):
    """``x ** 2``, looked at on the way."""

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
    "vmap": lambda f: jax.vmap(watching(f))(FIVE),
    "jit of vmap": lambda f: jax.jit(jax.vmap(watching(f)))(FIVE),
    "vmap of vmap": lambda f: jax.vmap(jax.vmap(watching(f)))(FIVE[:4].reshape(2, 2)),
    "vmap, not mapped": lambda f: jax.vmap(lambda x: x + watching(f)(TWO))(FIVE),
    "grad": lambda f: jax.grad(watching(f))(TWO),
    "jit of grad": lambda f: jax.jit(jax.grad(watching(f)))(TWO),
    "value_and_grad": lambda f: jax.value_and_grad(watching(f))(TWO),
    "vmap of grad": lambda f: jax.vmap(jax.grad(watching(f)))(FIVE),
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
    "vmap of custom_jvp": lambda f: jax.vmap(custom_jvp(f))(FIVE),
    "custom_vjp": lambda f: custom_vjp(f)(TWO),
    "grad of custom_vjp": lambda f: jax.grad(custom_vjp(f))(TWO),
    "jit of grad of custom_vjp": lambda f: jax.jit(jax.grad(custom_vjp(f)))(TWO),
    "vmap of grad of custom_vjp": lambda f: jax.vmap(jax.grad(custom_vjp(f)))(FIVE),
    "scan": lambda f: scan(f, FIVE),
    "jit of scan": lambda f: jax.jit(lambda x: scan(f, x))(FIVE),
    "vmap of scan": lambda f: jax.vmap(lambda x: scan(f, x))(FIVE[:4].reshape(2, 2)),
    "grad of scan": lambda f: jax.grad(lambda x: scan(f, x))(FIVE),
    "jit of grad of scan": lambda f: jax.jit(jax.grad(lambda x: scan(f, x)))(FIVE),
    "grad of remat of scan": lambda f: jax.grad(jax.checkpoint(lambda x: scan(f, x)))(FIVE),
    "loop of length 0": lambda f: fori(f, TWO, 0),
    "fori_loop": lambda f: fori(f, TWO),
    "grad of fori_loop": lambda f: jax.grad(lambda x: fori(f, x))(TWO),
    "while body": lambda f: while_body(f, TWO),
    "vmap of while body": lambda f: jax.vmap(lambda x: while_body(f, x))(FIVE),
    "jvp of while body": lambda f: jax.jvp(lambda x: while_body(f, x), (TWO,), (TWO,)),
    "while predicate": lambda f: while_predicate(f, TWO),
    "vmap of while predicate": lambda f: jax.vmap(lambda x: while_predicate(f, x))(FIVE),
    "jvp of while predicate": lambda f: jax.jvp(lambda x: while_predicate(f, x), (TWO,), (TWO,)),
    "cond, taken": lambda f: cond(f, TWO),
    "cond, not taken": lambda f: cond(f, TWO - 2),
    "grad of cond": lambda f: jax.grad(lambda x: cond(f, x))(TWO),
    "jit of grad of cond": lambda f: jax.jit(jax.grad(lambda x: cond(f, x)))(TWO),
    "vmap of cond": lambda f: jax.vmap(lambda x: cond(f, x))(FIVE),
}
# Ordered, JAX answers these with wrong numbers.
WRONG_IN_JAX = {"vmap of while predicate"}


def outcome(make, note, program, ordered):
    """Value and calls, or the class of the refusal."""
    host, seen = note()
    try:
        value = jax.block_until_ready(program(make(host, ordered=ordered)))
    except Exception as error:
        jax.effects_barrier()
        return type(error), seen
    jax.effects_barrier()
    return jax.tree.map(np.asarray, value), seen


def decorated(host, ordered):
    return jaxcb.debug(ordered=ordered)(host)


def dropped_in(host, ordered):
    return functools.partial(jaxcb.debug_callback, host, ordered=ordered)


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_calls_are_those_of_jax(jax_debug, note, name):
    """D2: unordered, so as a set with repetitions."""
    value, seen = outcome(decorated, note, PROGRAMS[name], ordered=False)
    expected, jax_seen = outcome(jax_debug, note, PROGRAMS[name], ordered=False)
    jax.tree.map(np.testing.assert_array_equal, value, expected)
    assert sorted(seen) == sorted(jax_seen)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in WRONG_IN_JAX])
def test_ordered_values_and_calls_are_those_of_jax(jax_debug, note, name):
    """D2: the same sequence, or a refusal of the same class."""
    value, seen = outcome(dropped_in, note, PROGRAMS[name], ordered=True)
    expected, jax_seen = outcome(jax_debug, note, PROGRAMS[name], ordered=True)
    if isinstance(expected, type):
        assert value is expected
    else:
        jax.tree.map(np.testing.assert_array_equal, value, expected)
    assert seen == jax_seen


CALLS = {
    "jit": [2],
    "inner jit": [2, 2],
    "vmap": [1, 2, 3, 4, 5],
    "vmap of vmap": [1, 2, 3, 4],
    "grad": [2],
    "jit of grad": [2],
    "value_and_grad": [2],
    "jvp": [2],
    "vjp": [2],
    "scan": [1, 2, 3, 4, 5],
    "grad of scan": [1, 2, 3, 4, 5],
    "fori_loop": [1, 2, 4],
    "loop of length 0": [],
    "while body": [2, 3],
    "while predicate": [2, 3, 4],
    "cond, taken": [2],
    "cond, not taken": [0],
    "grad of cond": [2],
    "custom_jvp": [2],
    "custom_vjp": [2],
}


@pytest.mark.parametrize(("name", "calls"), CALLS.items(), ids=CALLS)
def test_calls_are_those_one_can_read_off_the_program(debug, note, name, calls):
    """D2: JAX's too."""
    _, seen = outcome(debug, note, PROGRAMS[name], ordered=False)
    assert sorted(seen) == calls


@pytest.mark.parametrize("compiled", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_ordered_callback_in_a_batched_while_predicate_is_right_or_refused(
    our_debug, note, compiled
):
    """D2: never wrong numbers."""
    host, seen = note()
    f = our_debug(host, ordered=True)

    def count(limit):
        def more(c):
            f(c[0])
            return c[1] < limit

        return lax.while_loop(more, lambda c: (c[0] + 1, c[1] + 1), (0, np.float32(0)))[1]

    limits = np.float32([1, 3, 2])
    try:
        answer = jax.block_until_ready(compiled(jax.vmap(count))(limits))
    except (NotImplementedError, ValueError) as error:
        jax.effects_barrier()
        assert "rdered" in str(error)
        assert seen == []
    else:
        jax.effects_barrier()
        np.testing.assert_array_equal(answer, limits)
        assert seen == [0, 1, 2, 3]


# D3: what is no array


class Settings:
    """An object without equality or hash worth the name."""

    __hash__ = None


@pytest.mark.parametrize(
    ("transform", "calls"),
    [
        (lambda f: f(TWO), 1),
        (lambda f: jax.jit(f)(TWO), 1),
        (lambda f: jax.vmap(f)(FIVE), 5),
        (lambda f: jax.grad(lambda x: (f(x), x)[1])(TWO), 1),
        (lambda f: lax.map(f, FIVE), 5),
    ],
    ids=["eager", "jit", "vmap", "grad", "lax.map"],
)
def test_arguments_that_are_no_arrays_reach_the_host_unchanged(debug, transform, calls):
    """D3: strings and objects, by position, by keyword and inside structures."""
    seen = []
    settings = Settings()

    def host(name, x, tree, *, unit, of):
        seen.append((name, np.asarray(x).shape, tree["kind"], tree["nothing"], unit, of))
        assert of is settings
        assert np.asarray(tree["y"]).shape == np.asarray(x).shape

    f = debug(host)

    def program(x):
        f("loss", x, {"kind": "train", "y": x + 1, "nothing": None}, unit="nat", of=settings)
        return x

    transform(program)
    jax.effects_barrier()
    assert seen == calls * [("loss", (), "train", None, "nat", settings)]


@pytest.mark.parametrize("number", [3, 2.5, True, 1 + 2j], ids=repr)
def test_python_numbers_keep_their_value(debug, run, number):
    """D3: 1 call each, eager and compiled."""
    seen = []
    f = debug(lambda x, k: seen.append((np.asarray(x).item(), np.asarray(k).item())))
    run(lambda: f(number, k=number))
    run(jax.jit(lambda: f(number, k=number)))
    assert seen == 2 * [(number, number)]


# Printing

PRINTS = {
    "named": lambda p, x: p("x = {x}", x=x),
    "positional": lambda p, x: p("{} and {}", x, x + 1),
    "numbered": lambda p, x: p("{1} before {0}", x, x + 1),
    "mixed": lambda p, x: p("{} of {total}", x, total=x * 2),
    "format spec": lambda p, x: p("{x:.3f}|{x!s:>6}", x=x),
    "no field": lambda p, x: p("hello"),
    "empty": lambda p, x: p(""),
    "string argument": lambda p, x: p("{name}: {x}", name="loss", x=x),
    "array": lambda p, x: p("{}", x * jnp.arange(4)),
    "structure": lambda p, x: p("{tree[a]}", tree={"a": x}),
}


def printed(capsys, program):
    capsys.readouterr()
    jax.block_until_ready(program())
    jax.effects_barrier()
    return capsys.readouterr().out


@eager_or_jit
@pytest.mark.parametrize("line", PRINTS.values(), ids=PRINTS)
def test_text_is_that_of_jax(capsys, line, compiled):
    """D1, D2: fields of every sort; one line a call."""
    ours = printed(capsys, lambda: compiled(lambda x: line(jaxcb.debug_print, x))(TWO))
    theirs = printed(capsys, lambda: compiled(lambda x: line(jax.debug.print, x))(TWO))
    assert ours == theirs
    assert ours.count("\n") == 1


def test_text_is_what_the_format_says(capsys):
    """D1: value at run time."""
    f = jax.jit(lambda x: jaxcb.debug_print("{} {name} {y:.2f}", x, name="then", y=x / 4))
    assert printed(capsys, lambda: f(TWO)) == "2.0 then 0.50\n"
    assert printed(capsys, lambda: f(TWO + 1)) == "3.0 then 0.75\n"


def test_doubled_braces_before_a_field_are_text(capsys):
    """JAX fails here; 1 line."""
    f = jax.jit(lambda x: jaxcb.debug_print("{{set}} {x}", x=x))
    assert printed(capsys, lambda: f(TWO)) == "{set} 2.0\n"


def test_vmap_prints_once_per_lane(capsys):
    """D2: 5 lines over 5 lanes."""
    f = jax.vmap(lambda x: jaxcb.debug_print("lane {x}", x=x))
    lines = printed(capsys, lambda: f(FIVE)).splitlines()
    assert sorted(lines) == [f"lane {x}" for x in FIVE]


def test_ordered_prints_come_in_program_order(capsys):
    """D1: 1 + 5 + 1 lines."""

    def program(x):
        jaxcb.debug_print("start", ordered=True)
        lax.fori_loop(0, 5, lambda i, c: jaxcb.debug_print("{}", i, ordered=True) or c, 0)
        jaxcb.debug_print("{x}", x=x, ordered=True)

    lines = printed(capsys, lambda: jax.jit(program)(TWO)).split()
    assert lines == ["start", "0", "1", "2", "3", "4", "2.0"]


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (lambda p, x: p("{} {}", x), IndexError),
        (lambda p, x: p("{y}", x=x), KeyError),
        (lambda p, x: p("{x}", x=x, y=x), ValueError),
        (lambda p, x: p("{}", x, x), ValueError),
        (lambda p, x: p("3.0", x=x), ValueError),
        (lambda p, x: p(f"{TWO}", x=x), ValueError),
        (lambda p, x: p("{", x), ValueError),
    ],
    ids=["too few", "unknown", "unused name", "unused one", "no field", "f-string", "malformed"],
)
@pytest.mark.parametrize("form", ["one call", "two calls"])
def test_format_is_checked_when_called(capsys, line, error, form):
    """Before anything is compiled; the class is JAX's."""
    ours = jaxcb.debug_print if form == "one call" else jaxcb.debug_print()
    for debug_print in (ours, jax.debug.print):
        with pytest.raises(error):
            jax.make_jaxpr(lambda x, p=debug_print: line(p, x))(TWO)
    assert capsys.readouterr().out == ""


def test_accidental_f_string_is_named(capsys):
    """A field that is already filled in leaves its argument without use."""
    with pytest.raises(ValueError, match="f-string"):
        jax.jit(lambda x: jaxcb.debug_print(f"{TWO}", x=x))(TWO)
    assert capsys.readouterr().out == ""


def test_check_can_be_skipped(capsys):
    """As with JAX; 1 line."""
    f = jax.jit(lambda x: jaxcb.debug_print("{}", x, x, skip_format_check=True))
    assert printed(capsys, lambda: f(TWO)) == "2.0\n"


@pytest.mark.parametrize("debug_print", [jax.debug.print, jaxcb.debug_print], ids=["jax", "ours"])
def test_print_options_are_those_of_the_line_that_called(capsys, debug_print):
    """Captured when called, not when run: 2 lines, one for each of the options."""

    def program(x):
        with np.printoptions(precision=2):
            debug_print("{}", x, ordered=True)
        debug_print("{}", x, ordered=True)

    f = jax.jit(program).lower(FIVE / 7).compile()
    with np.printoptions(precision=5):
        lines = printed(capsys, lambda: f(FIVE / 7)).splitlines()
    default = np.array2string(FIVE / 7)
    with np.printoptions(precision=2):
        short = np.array2string(FIVE / 7)
    assert lines == [short, default]


@pytest.mark.parametrize("debug_print", [jax.debug.print, jaxcb.debug_print], ids=["jax", "ours"])
def test_text_goes_to_the_stdout_of_the_moment_of_printing(capsys, debug_print):
    """The program was compiled, and run before, with another one."""
    f = jax.jit(lambda x: debug_print("{x}", x=x))
    assert printed(capsys, lambda: f(TWO)) == "2.0\n"
    other = streams.StringIO()
    with contextlib.redirect_stdout(other):
        f(TWO + 1)
        jax.effects_barrier()
    assert other.getvalue() == "3.0\n"
    assert capsys.readouterr().out == ""


def test_two_call_form_of_print_leaves_every_keyword_to_the_format(capsys):
    """Also those that are options in the first call: 1 line."""
    f = jax.jit(
        lambda x: jaxcb.debug_print(ordered=True)(
            "{x} {ordered} {partitioned}", x=x, ordered=x + 1, partitioned=x + 2
        )
    )
    assert printed(capsys, lambda: f(TWO)) == "2.0 3.0 4.0\n"


def test_two_call_form_of_callback_leaves_every_keyword_to_the_host_function(run):
    """Also those that are options in the first call: 1 call."""
    seen = []

    def host(x, *, ordered, partitioned):
        seen.append((float(x), float(ordered), float(partitioned)))

    run(
        jax.jit(
            lambda x: jaxcb.debug_callback(ordered=True)(host, x, ordered=x + 1, partitioned=x + 2)
        ),
        TWO,
    )
    assert seen == [(2.0, 3.0, 4.0)]


def test_one_call_form_takes_the_options_from_the_keywords(run):
    """They do not reach the host function: 1 call."""
    seen = []
    f = jax.jit(lambda x: jaxcb.debug_callback(lambda **k: seen.append([*k]), x=x, ordered=True))
    run(f, TWO)
    assert seen == [["x"]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: jaxcb.debug_print(x=1),
            "debug_print received unexpected arguments in the two-call form: "
            "args=() kwargs={'x': 1}",
        ),
        (
            lambda: jaxcb.debug_print(None, 2),
            "debug_print received unexpected arguments in the two-call form: args=(2,) kwargs={}",
        ),
        (
            lambda: jaxcb.debug_callback(x=1),
            "debug_callback received unexpected arguments in the two-call form: "
            "args=() kwargs={'x': 1}",
        ),
        (
            lambda: jaxcb.debug_callback(None, 2, ordered=True),
            "debug_callback received unexpected arguments in the two-call form: "
            "args=(2,) kwargs={}",
        ),
    ],
    ids=["print, keyword", "print, positional", "callback, keyword", "callback, positional"],
)
def test_arguments_in_the_call_of_the_options_are_a_type_error(call, message):
    """Word for word JAX's; nothing ran."""
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value) == message


@pytest.mark.parametrize("form", ["one call", "two calls"])
@pytest.mark.parametrize("thing", ["{}", 3], ids=repr)
def test_callback_must_be_callable(form, thing):
    """A TypeError when called, as JAX."""
    call = jaxcb.debug_callback if form == "one call" else jaxcb.debug_callback()
    with pytest.raises(TypeError, match="must be callable"):
        call(thing, TWO)


def test_recording_holds_every_call_of_every_lane(our_debug, note, run):
    """What record() says is what happened: 5 calls of one site, lane by lane."""
    host, seen = note()
    f = our_debug(host)
    with jaxcb.record() as r:
        run(jax.jit(jax.vmap(lambda x: f(x))), FIVE)
    assert sorted(seen) == [1, 2, 3, 4, 5]
    assert len(r.recording) == 5
    assert sorted(call.lane for call in r.recording) == [0, 1, 2, 3, 4]
    (lowered,) = {r.recording.lowered[call.lowered] for call in r.recording}
    assert lowered.site.flavor == "debug"
    assert lowered.lanes == 5
    assert r.recording.elisions == ()


def test_mutable_reference_is_read_where_the_callback_stands(debug, run):
    new_ref = getattr(jax, "new_ref", None) or jax.array_ref  # its name until JAX 0.8
    seen = []
    f = debug(lambda x: seen.append(np.asarray(x).tolist()))

    def program(x):
        ref = new_ref(x)
        f(ref)
        ref[...] = ref[...] + 1
        return ref[...]

    assert run(jax.jit(program), jnp.ones(2)).tolist() == [2.0, 2.0]
    assert seen == [[1.0, 1.0]]
