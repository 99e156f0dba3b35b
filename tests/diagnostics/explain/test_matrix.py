"""Each column of the matrix equals a run of the function under that transformation and jit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import Status
from tests.interface import matrix_output, matrix_to_text
from tests.stack.elision._battery import Hosts

from ._same import check_calls, in_new_thread, run, sorted_facts

pytestmark = pytest.mark.slow

X = np.arange(1, 4, dtype=np.float32)
N = np.arange(1, 4, dtype=np.int32)
COLUMNS = ("jit", "vmap", "grad", "hessian", "scan", "remat")


def stacked(args, count):
    return [np.stack([np.asarray(arg)] * count) for arg in args]


def differentiated(derivative, function, args):
    floating = [
        n for n, arg in enumerate(args) if np.issubdtype(np.asarray(arg).dtype, np.floating)
    ]
    if not floating:
        return None

    def total(*args):
        leaves = map(jnp.asarray, jax.tree.leaves(function(*args)))
        return sum(leaf.real.sum() for leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.inexact))

    return derivative(total, argnums=floating), args


def scanned(function, args):
    scan = lambda *xs: lax.scan(lambda c, x: (c, function(*x)), 0, xs, length=5)[1]  # noqa: E731
    return scan, stacked(args, 5)


# The transformation of each column, written out with JAX: (function, args), or None if refused.
BY_HAND = {
    "jit": lambda function, args: (function, args),
    "vmap": lambda function, args: (jax.vmap(function), stacked(args, 3)) if args else None,
    "grad": lambda function, args: differentiated(jax.grad, function, args),
    "hessian": lambda function, args: differentiated(jax.hessian, function, args),
    "scan": scanned,
    "remat": lambda function, args: differentiated(jax.grad, jax.checkpoint(function), args),
}


def plain(h):
    a = h.pure("a")
    return lambda x: a(x), (X,)


def ruled(h):
    a, b, c = h.pure("a"), h.pure("b"), h.pure("c")
    a.defjvp(lambda xs, ts: (a(*xs), b(*xs) * ts[0]))
    b.defjvp(lambda xs, ts: (b(*xs), c(*xs) * ts[0]))
    return lambda x: jnp.sin(a(x)), (X,)


def pulled(h):
    a, b = h.pure("a"), h.pure("b")
    a.defvjp(lambda x: (a(x), x), lambda x, ct: (b(x) * ct,))
    return lambda x: jnp.sin(a(x)), (X,)


def stopped(h):
    a, b = h.pure("a"), h.pure("b", vmap_method="expand_dims")
    return lambda x: x * x * a(lax.stop_gradient(x)) + b(lax.stop_gradient(x)), (X,)


def effects(h):
    a, b = h.debug("a"), h.io("b")
    return lambda x: (a(x), b(lax.stop_gradient(x)), jnp.sin(x))[2], (X,)


def ordered(h):
    a = h.debug("a", ordered=True)
    return lambda x: (a(x), jnp.sin(x))[1], (X,)


def unused(h):
    a, b = h.pure("a"), h.pure("b")
    return lambda x: (a(lax.stop_gradient(x)), x * b(lax.stop_gradient(x)))[1], (X,)


def optimized_away(h):
    a = h.pure("a")
    return lambda x: jnp.where(False, a(lax.stop_gradient(x)), jnp.sin(x)), (X,)


def looped(h):
    a, b = h.pure("a"), h.pure("b")

    def body(c, _):
        return jnp.sin(c) * a(lax.stop_gradient(c)) + b(X), None

    return lambda x: lax.scan(body, x, length=2)[0], (X,)


def branching(h):
    a = h.pure("a")
    f = lambda y: y * a(lax.stop_gradient(y))  # noqa: E731
    return lambda x: lax.cond(x.sum() > 0, f, jnp.sin, x), (X,)


def several(h):
    a = h.pure("a", result=lambda x, n: x, function=lambda x, n: x)
    return lambda x, n: {"p": x * a(lax.stop_gradient(x), n), "q": n}, (X, N)


def integers(h):
    a = h.pure("a")
    return lambda n: a(n), (N,)


def number(h):
    a = h.pure("a")
    return lambda x: x * a(lax.stop_gradient(x)), (1.5,)


def nothing(h):
    return lambda x: jnp.sin(x), (X,)


def no_arguments(h):
    a = h.draw("a")
    return lambda: a(), ()


def inner(h):
    a = h.pure("a")
    g = jax.jit(lambda x: x * a(lax.stop_gradient(x)))
    return lambda x: g(x) - 2 * g(x), (X,)


PROGRAMS = [
    plain,
    ruled,
    pulled,
    stopped,
    effects,
    ordered,
    unused,
    optimized_away,
    looped,
    branching,
]
PROGRAMS += [several, integers, number, nothing, no_arguments, inner]


@pytest.mark.long
@pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)
@in_new_thread
def test_each_column_equals_a_run_of_the_transformed_function(make):
    hosts = Hosts()
    function, args = make(hosts)
    matrix = jaxcb.explain_matrix(function)(*args)
    assert not hosts.calls
    assert matrix.transformations == COLUMNS
    assert matrix.columns.keys() | matrix.refused.keys() == set(COLUMNS)
    assert not matrix.columns.keys() & matrix.refused.keys()
    for column in COLUMNS:
        check_column(matrix, column, make)


def check_column(matrix, column, make):
    hosts = Hosts()
    made = BY_HAND[column](*make(hosts))
    if made is None:
        assert matrix.refused[column].startswith("none of its arguments "), column
        return
    try:
        recording, calls = run(made, hosts)
    except Exception as error:
        words, objects, _ = str(error).strip().partition("\n")[0].partition(": [<")
        refusal = matrix.refused[column]
        assert refusal.startswith(words) if objects else refusal == words[:300], column
        return
    explained = matrix.columns[column]
    assert explained.ahead, column
    assert sorted_facts(explained) == sorted_facts(recording), column
    check_calls(explained, calls)


def test_text_and_html_show_the_calls_and_refusals_of_every_column():
    hosts = Hosts()
    function, args = plain(hosts)
    matrix = jaxcb.explain_matrix(function)(*args)
    head, row, *remarks = matrix_to_text(matrix).splitlines()
    assert head.split() == ["where", "source", *COLUMNS]
    cells = row.split("  ")
    cells = [cell.strip() for cell in cells if cell.strip()]
    assert cells[2:] == ["1 call", "3 calls", "refused", "refused", "5 calls", "needs grad"]
    assert remarks[0].strip().startswith("grad, hessian refused: cannot differentiate a@")
    html = matrix_output(matrix).html
    assert "cannot differentiate a@" in html
    assert "3 calls" in html
    assert "<script" not in html


@pytest.mark.kept
@pytest.mark.parametrize("make", [plain, integers], ids=lambda make: make.__name__)
def test_checkpoint_is_not_said_to_be_refused_where_the_derivative_is(make):
    hosts = Hosts()
    function, args = make(hosts)
    matrix = jaxcb.explain_matrix(function)(*args)
    text, html = matrix_to_text(matrix), matrix_output(matrix).html
    assert text.splitlines()[1].endswith("needs grad")
    assert "grad, hessian refused: " in text
    assert "needs grad" in html
    assert "<b>grad, hessian</b> refused: " in html


@pytest.mark.kept
def test_checkpoint_that_is_refused_though_the_derivative_is_not_says_so():
    hosts = Hosts()
    a = hosts.io("a")
    matrix = jaxcb.explain_matrix(lambda x: jnp.sin(x) + a(lax.stop_gradient(x)))(X)
    text, html = matrix_to_text(matrix), matrix_output(matrix).html
    assert text.splitlines()[1].endswith("refused")
    assert "  remat refused: cannot differentiate a jax.checkpoint with a@" in text
    assert "<b>remat</b> refused: cannot differentiate a jax.checkpoint with a@" in html


def test_derivatives_are_refused_for_integers():
    hosts = Hosts()
    function, args = integers(hosts)
    matrix = jaxcb.explain_matrix(function)(*args)
    assert list(matrix.refused) == ["grad", "hessian", "remat"]
    assert set(matrix.refused.values()) == {
        "none of its arguments is a floating-point number to differentiate by"
    }


def test_unused_call_in_a_jitted_function_is_in_every_column():
    hosts = Hosts()
    a = hosts.pure("a")
    f = jax.jit(lambda x: (a(lax.stop_gradient(x)), jnp.sin(x))[1])
    matrix = jaxcb.explain_matrix(f)(X)
    assert not matrix.refused
    for name, column in matrix.columns.items():
        assert [o.status for o in column.outcomes] == [Status.UNUSED], name
