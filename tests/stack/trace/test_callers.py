"""Callers distinguish call sites: a helper called on two lines has two sites."""

from tests.report._several import recording_of, rows
from tests.upgraded import UPGRADED


def test_jitted_helper_that_is_traced_once_is_one_row():
    recording = recording_of(
        """
        f = jax.jit(lambda x: jaxcb.pure_callback(np.sin, x, x))

        @jax.jit
        def g(x):
            y = f(x)
            f(x + 1)
            return y
        """,
        "g(np.float32(1))",
    )
    assert rows(recording) == {"line 2": "deduplicated 1"}


def test_code_that_runs_a_compiled_program_is_not_a_caller():
    """Only the first call compiles the program."""
    recording = recording_of(
        """
        g = jax.jit(lambda x: jaxcb.pure_callback(np.sin, x, x))

        def several():
            g(np.float32(1))
            g(np.ones(2, np.float32))
            return g(np.float32(2))
        """,
        "several()",
    )
    assert rows(recording) == {"line 2": "kept 3"}


def test_caller_of_a_derivative_rule_is_jax():
    """Neither the code that differentiates nor a rule that differentiates a rule is a caller."""
    recording = recording_of(
        """
        f = jaxcb.pure(np.sin, result="x")

        @f.defjvp
        def rule(primals, tangents):
            x, = primals
            return f(x), f(x + 1) * tangents[0]

        def g(x):
            y = f(x)
            return y + f(x + y)
        """,
        "jax.grad(jax.grad(g))(np.float32(1)) + jax.jit(jax.value_and_grad(g))(np.float32(1))[0]",
    )
    names = [(site.line, bool(site.callers)) for site in recording.bound]
    traced_too = {10, 11} if UPGRADED else set()  # the function itself, beside its rule
    assert {line for line, called in names if not called} == {7} | traced_too
    assert {line for line, called in names if called} <= {10, 11}
