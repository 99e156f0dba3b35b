"""Side effects of the function of a pure callback of JAX's own API are reported."""

import functools
import warnings

import equinox
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback

import jupyter_jaxcb as jaxcb
from tests.diagnostics.observe._jax_callbacks import STRUCT, one
from tests.interface import headline, summarize

pytestmark = pytest.mark.kept
COUNTS = {"calls": 0}


def counts(x):
    COUNTS["calls"] += 1
    return np.asarray(x)


def prints(prefix, x):
    print(prefix, x)
    return np.asarray(x)


class Solver:
    steps = 0

    def solve(self, x):
        self.steps += 1
        return np.asarray(x)


def clocks(x):
    import time

    return np.float32(time.time())


def draws(x):
    return np.float32(np.random.rand())


def writes_a_file(x):
    with open("/dev/null", "w") as file:
        file.write(str(x))
    return np.asarray(x)


def warned(program, *arguments):
    """Return the warnings of one observed run, and its recording."""
    with warnings.catch_warnings(record=True) as seen, jaxcb.observe_jax() as r:
        warnings.simplefilter("always")
        jax.block_until_ready(program(*arguments))
    found = [one for one in seen if one.category is jaxcb.ImpureFunctionWarning]
    return [str(one.message) for one in found], r.recording


def pure(function, x):
    return jax.pure_callback(function, STRUCT, x, vmap_method="sequential")


def test_side_effect_of_a_pure_function_of_jax_is_named_once_with_its_line_and_advice():
    program = jax.jit(lambda x: pure(counts, x))
    (message,), _ = warned(program, one())
    line = counts.__code__.co_firstlineno + 1
    assert message == (
        "the jax pure callback counts modifies outer state (COUNTS['calls'], "
        f"test_impure.py:{line}), but JAX may remove, repeat or deduplicate its calls. "
        "Use io_callback."
    )
    assert warned(lambda x: pure(counts, x), one())[0] == []


@pytest.mark.parametrize("around", [lambda f: f, jax.jit, jax.vmap], ids=["eager", "jit", "vmap"])
def test_side_effect_is_named_however_the_callback_is_called(around):
    source = "def draws(x):\n    return np.float32(np.random.rand())"
    exec(source, names := {"np": np})
    draws = names["draws"]  # of different code in each case: one warning for each code
    draws.__code__ = draws.__code__.replace(co_name=f"draws_{id(around)}")
    argument = jnp.ones(3) if around is jax.vmap else one()
    (message,), _ = warned(around(lambda x: pure(draws, x)), argument)
    assert "draws random numbers (np.random.rand, " in message
    assert "Use io_callback, or create the generator from an argument" in message


@pytest.mark.parametrize(
    "function, does",
    [
        (functools.partial(prints, "saw"), "prints prints (print, "),
        (Solver().solve, "solve modifies outer state (self.steps, "),
        (clocks, "clocks reads the clock (time.time, "),
        (writes_a_file, "writes_a_file opens a file (open, "),
    ],
    ids=["partial", "method", "clock", "file"],
)
def test_side_effects_of_every_kind_and_of_every_callable_are_named(function, does):
    (message,), _ = warned(jax.jit(lambda x: pure(function, x)), one())
    assert message.startswith(f"the jax pure callback {does}")


def test_program_that_was_traced_before_the_observation_is_named_when_it_is_lowered():
    def late(x):
        print(x)
        return np.asarray(x)

    traced = jax.jit(lambda x: pure(late, x)).trace(one())
    (message,), _ = warned(lambda: traced.lower().compile())
    assert message.startswith("the jax pure callback late prints (print, ")
    assert "Print in jax.debug.callback, or use io_callback." in message


def test_function_of_the_user_in_a_function_of_a_library_is_named():
    def inner(x):
        print(x)
        return np.asarray(x)

    wrapped = functools.partial(equinox.filter_pure_callback, inner, result_shape_dtypes=STRUCT)
    (message,), _ = warned(jax.jit(wrapped), one())
    assert message.startswith("the jax pure callback inner prints (print, ")


def test_functions_of_libraries_and_other_flavors_and_pure_functions_are_not_named():
    def program(x):
        x = equinox.error_if(x, x < 0, "negative")  # its function writes into a module
        jax.debug.callback(functools.partial(prints, "debug"), x)
        x = io_callback(functools.partial(prints, "io"), STRUCT, x)
        return pure(np.sin, x) + pure(lambda x: np.cos(x, dtype=np.float32), x)

    assert warned(jax.jit(program), one())[0] == []


def of_jax(function):
    return lambda x: pure(function, x)


def ours(function):
    return lambda x: jaxcb.pure_callback(function, STRUCT, x)


def registered(function):
    return jaxcb.pure(function, result="x")


def hoisted(call, x):
    return jax.lax.fori_loop(0, 5, lambda i, total: total + call(x), x)


def deduplicated(call, x):
    again = jax.jit(call)
    return again(x) + again(x)


@pytest.mark.filterwarnings("ignore::jupyter_jaxcb.ImpureFunctionWarning")
@pytest.mark.parametrize("elided", [hoisted, deduplicated])
@pytest.mark.parametrize(
    "flavor, advice",
    [(of_jax, "use io_callback"), (ours, "use an io callback"), (registered, "use an io callback")],
)
def test_calls_of_an_impure_function_that_are_missing_are_a_warning(elided, flavor, advice):
    call = flavor(counts)
    with jaxcb.observe_jax() as r:
        jax.jit(lambda x: elided(call, x))(one()).block_until_ready()
    (site,) = summarize(r.recording)
    assert (site.calls, str(site.status)) == (1, elided.__name__)
    assert site.advice == f"{advice}, because the host function has side effects"
    assert headline([site])[0] == ("warning", f"⚠ counts {site.status} in spite of side effects")
    loaded = jaxcb.Recording.from_json(r.recording.to_json())
    assert summarize(loaded) == [site]


@pytest.mark.parametrize("elided", [hoisted, deduplicated])
def test_missing_calls_of_a_function_without_side_effects_are_no_warning(elided):
    with jaxcb.observe_jax() as r:
        program = jax.jit(lambda x: elided(lambda x: pure(np.sin, x), x))
        program(one()).block_until_ready()
    (site,) = summarize(r.recording)
    assert (site.calls, site.consequence) == (1, elided.__name__)
    assert {part.tone for part in headline([site])} == {"kept"}
