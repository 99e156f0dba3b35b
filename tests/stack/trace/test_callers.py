"""Callers distinguish call sites: a helper called on two lines has two sites."""

import pytest

from tests.report._several import library, recording_of, rows
from tests.upstream.upgraded import UPGRADED


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


def test_python_loop_is_one_row():
    recording = recording_of(
        """
        f = lambda x: jaxcb.pure_callback(np.sin, x, x)

        @jax.jit
        def g(x):
            for _ in range(3):
                x = f(x)
            return x + sum([f(x + n) for n in range(2)])
        """,
        "g(np.float32(1))",
    )
    assert rows(recording) == {
        "line 2 (from g, line 7)": "kept 3",
        "line 2 (from line 8)"
        if "listcomp" in str(recording.bound)
        else "line 2 (from g, line 8)": "kept 2",
    }


def test_two_calls_of_a_helper_on_one_line_are_told_apart_by_column():
    recording = recording_of(
        """
        f = lambda x: jaxcb.pure_callback(np.sin, x, x)
        g = jax.jit(lambda x: (f(x), f(x + 1))[0])
        """,
        "g(np.float32(1))",
    )
    assert rows(recording) == {
        "line 2 (from line 3:24)": "kept 1",
        "line 2 (from line 3:30)": "unused 0",
    }


def test_recursive_calls_are_one_caller():
    recording = recording_of(
        """
        f = lambda x: jaxcb.pure_callback(np.sin, x, x)

        def deep(n, x):
            return f(x) if n == 0 else deep(n - 1, x)
        """,
        "jax.jit(lambda x: deep(0, x) + deep(1, x) + deep(30, x))(np.float32(1))",
    )
    assert sorted(rows(recording).values()) == ["kept 1"] * 3
    (frames,) = {len(site.callers) for site in recording.bound if len(site.callers) > 2}
    assert frames == 3  # f's caller, the recursion, the program


@pytest.mark.parametrize(
    "around",
    [
        "jax.jit(jax.vmap(g))(np.ones(2, np.float32))",
        "jax.jit(jax.grad(lambda x: g(jax.lax.stop_gradient(x)) * x))(np.float32(1))",
        "jax.jit(lambda x: jax.lax.scan(lambda c, _: (g(c), None), x, length=2)[0])(np.float32(1))",
        "jax.jit(jax.checkpoint(g))(np.float32(1))",
        "functools.partial(functools.wraps(g)(lambda x: g(x)), np.float32(1))()",
        "jax.lax.fori_loop(0, 2, lambda i, c: g(c), np.float32(1))",
    ],
    ids=["vmap", "grad", "scan", "checkpoint", "partial and decorator", "loop without jit"],
)
def test_frames_of_jax_are_not_callers(around):
    recording = recording_of(
        """
        def f(x):
            return jaxcb.pure_callback(np.sin, x, x, vmap_method="expand_dims")

        def g(x):
            y = f(x)
            return y + f(2 * x)
        """,
        around,
    )
    assert list(rows(recording)) == ["line 3 (from g, line 6)", "line 3 (from g, line 7)"]
    files = {frame.file for site in recording.bound for frame in site.callers}
    assert files <= {"model.py", "run.py"}


def test_deep_library_names_the_frame_where_calls_diverge():
    """Each layer is called through wrappers of the library, as in Equinox."""
    names = library(
        """
        def wrapped(f):
            def call(*args):
                return f(*args)
            return call

        def linear(x):
            return jaxcb.pure_callback(np.sin, x, x)

        for _ in range(8):
            linear = wrapped(linear)

        def mlp(x):
            x = linear(x)
            return linear(x)
        """
    )
    recording = recording_of("", "jax.jit(lambda x: mlp(x))(np.float32(1))", **names)
    assert list(rows(recording)) == [
        "line 1 (via mlp, mylib.py:14)",
        "line 1 (via mlp, mylib.py:15)",
    ]


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
