"""debug_print prints the same text as jax.debug.print, and checks its format string."""

import contextlib
import io as streams

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jupyter_jaxcb as jaxcb
from tests.conformance._parameters import FIVE_FROM_1, TWO, eager_or_jit

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
    """Return what `program` prints to stdout."""
    capsys.readouterr()
    jax.block_until_ready(program())
    jax.effects_barrier()
    return capsys.readouterr().out


@eager_or_jit
@pytest.mark.parametrize("line", PRINTS.values(), ids=PRINTS)
def test_text_is_the_same_as_with_jax(capsys, line, compiled):
    ours = printed(capsys, lambda: compiled(lambda x: line(jaxcb.debug_print, x))(TWO))
    theirs = printed(capsys, lambda: compiled(lambda x: line(jax.debug.print, x))(TWO))
    assert ours == theirs
    assert ours.count("\n") == 1


@pytest.mark.long
@pytest.mark.parametrize("field", ["{tree}", "{tree[a]!r}"])
@pytest.mark.parametrize("dtype", ["float32", "int32", "bool", "complex64", "bfloat16", "uint8"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0), (13,), (14,), (4, 7), (2000,)], ids=str)
def test_arrays_in_pytrees_are_printed_as_by_jax(capsys, field, dtype, shape):
    """They always show their dtype, and lines break in the same places."""
    x = jnp.asarray(np.random.default_rng(0).standard_normal(shape) * 10).astype(dtype)

    def line(p):
        return jax.jit(lambda x: p(field, tree={"a": x, "b": [x]}))(x)

    ours, theirs = (
        printed(capsys, lambda p=p: line(p)) for p in (jaxcb.debug_print, jax.debug.print)
    )
    assert ours == theirs
    assert "Array(" in ours


def test_fields_are_filled_in_with_the_values_of_each_run(capsys):
    f = jax.jit(lambda x: jaxcb.debug_print("{} {name} {y:.2f}", x, name="then", y=x / 4))
    assert printed(capsys, lambda: f(TWO)) == "2.0 then 0.50\n"
    assert printed(capsys, lambda: f(TWO + 1)) == "3.0 then 0.75\n"


def test_doubled_braces_before_a_field_are_text(capsys):
    """JAX's debug.print fails on this format."""
    f = jax.jit(lambda x: jaxcb.debug_print("{{set}} {x}", x=x))
    assert printed(capsys, lambda: f(TWO)) == "{set} 2.0\n"


def test_vmap_prints_once_per_element(capsys):
    f = jax.vmap(lambda x: jaxcb.debug_print("batch element {x}", x=x))
    lines = printed(capsys, lambda: f(FIVE_FROM_1)).splitlines()
    assert sorted(lines) == [f"batch element {x}" for x in FIVE_FROM_1]


def test_ordered_prints_come_in_program_order(capsys):

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
    """The error comes while tracing, and its class is the same as JAX's."""
    ours = jaxcb.debug_print if form == "one call" else jaxcb.debug_print()
    for debug_print in (ours, jax.debug.print):
        with pytest.raises(error):
            jax.make_jaxpr(lambda x, p=debug_print: line(p, x))(TWO)
    assert capsys.readouterr().out == ""


def test_error_about_an_accidental_f_string_says_so(capsys):
    """Python filled in the field before the call, so the argument has no field."""
    with pytest.raises(ValueError, match="f-string"):
        jax.jit(lambda x: jaxcb.debug_print(f"{TWO}", x=x))(TWO)
    assert capsys.readouterr().out == ""


def test_format_check_can_be_skipped(capsys):
    """`skip_format_check` exists in JAX too."""
    f = jax.jit(lambda x: jaxcb.debug_print("{}", x, x, skip_format_check=True))
    assert printed(capsys, lambda: f(TWO)) == "2.0\n"


@pytest.mark.parametrize("debug_print", [jax.debug.print, jaxcb.debug_print], ids=["jax", "ours"])
def test_numpy_print_options_are_captured_when_debug_print_is_called(capsys, debug_print):
    """The options in force when the program runs do not matter."""

    def program(x):
        with np.printoptions(precision=2):
            debug_print("{}", x, ordered=True)
        debug_print("{}", x, ordered=True)

    f = jax.jit(program).lower(FIVE_FROM_1 / 7).compile()
    with np.printoptions(precision=5):
        lines = printed(capsys, lambda: f(FIVE_FROM_1 / 7)).splitlines()
    default = np.array2string(FIVE_FROM_1 / 7)
    with np.printoptions(precision=2):
        short = np.array2string(FIVE_FROM_1 / 7)
    assert lines == [short, default]


@pytest.mark.parametrize("debug_print", [jax.debug.print, jaxcb.debug_print], ids=["jax", "ours"])
def test_text_goes_to_the_stdout_current_when_printing(capsys, debug_print):
    """The program was compiled and first run with another stdout."""
    f = jax.jit(lambda x: debug_print("{x}", x=x))
    assert printed(capsys, lambda: f(TWO)) == "2.0\n"
    other = streams.StringIO()
    with contextlib.redirect_stdout(other):
        f(TWO + 1)
        jax.effects_barrier()
    assert other.getvalue() == "3.0\n"
    assert capsys.readouterr().out == ""


def test_two_call_form_passes_every_keyword_of_the_second_call_to_the_format(capsys):
    """Even keywords that are options in the first call."""
    f = jax.jit(
        lambda x: jaxcb.debug_print(ordered=True)(
            "{x} {ordered} {partitioned}", x=x, ordered=x + 1, partitioned=x + 2
        )
    )
    assert printed(capsys, lambda: f(TWO)) == "2.0 3.0 4.0\n"


@pytest.mark.kept
@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_error_of_a_format_names_a_class_that_users_know(transform):
    with pytest.raises(Exception) as caught:
        transform(lambda x: jaxcb.debug_print("{:.2f}", x))(jnp.ones(3))
        jax.effects_barrier()
    text = str(jaxcb.host_error(caught.value) or caught.value)
    assert "numpy.ndarray.__format__" in text and "_Shown" not in text


@pytest.mark.kept
def test_a_number_is_formatted(capsys):
    jaxcb.debug_print("{:.2f} {:>8} {!r}", jnp.float32(0.125), jnp.float32(1.5), jnp.ones(2))
    assert capsys.readouterr().out == "0.12      1.5 Array([1., 1.], dtype=float32)\n"
