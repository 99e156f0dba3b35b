"""A site is the user's line and column, whatever code runs between it and the bind."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

double = jaxcb.pure(lambda x: 2 * x, result=lambda x: x)


def line_here(offset=0):
    return inspect.currentframe().f_back.f_lineno + offset


def sites_of(run):
    with jaxcb.record() as recorded:
        jax.block_until_ready(run())
    return [fact.site for fact in recorded.recording.lowered]


def test_site_is_the_line_that_calls():
    def f(x):
        y = x + 1
        return double(y)

    line = inspect.getsourcelines(f)[1] + 2
    (site,) = sites_of(lambda: jax.jit(f)(1.0))
    assert (site.line, site.file, site.source) == (line, __file__, "return double(y)")
    assert not site.cell


@pytest.mark.parametrize(
    "transform",
    [jax.jit, jax.vmap, lambda f: jax.jit(jax.vmap(f)), lambda f: jax.jit(jax.checkpoint(f)),
     lambda f: lambda xs: jax.lax.map(f, xs)],
    ids=["jit", "vmap", "jit vmap", "checkpoint", "map"],
)  # fmt: skip
def test_site_is_the_same_under_every_transformation(transform):
    line = line_here(+1)
    (site,) = sites_of(lambda: transform(lambda x: double(x))(jnp.arange(3.0)))
    assert site.line == line


def test_site_of_a_derivative_is_in_its_rule():
    sin = jaxcb.pure(np.sin, result=lambda x: x)
    cos = jaxcb.pure(np.cos, result=lambda x: x)

    @sin.defjvp
    def rule(primals, tangents):
        return sin(*primals), cos(*primals) * tangents[0]

    line = inspect.getsourcelines(rule)[1] + 2
    sites = sites_of(lambda: jax.jit(jax.grad(sin))(1.0))
    assert [(site.function, site.line) for site in sites] == [("cos", line)]


def test_library_in_between_is_a_caller_and_not_the_site():
    def through_library(x):
        return np.vectorize(double, otypes=[float])(x)

    with jaxcb.record() as recorded:
        through_library(np.ones(1))
    site = next(iter(recorded.recording.bound))
    assert site.source == "return np.vectorize(double, otypes=[float])(x)"
    assert any("numpy" in frame.file for frame in site.callers)
    assert "test_library_in_between_is_a_caller_and_not_the_site" in [
        frame.function for frame in site.callers
    ]


def test_two_calls_on_one_line_are_two_sites():
    first, second = sites_of(lambda: jax.jit(lambda x: double(x) + double(x + 1))(1.0))
    assert first.line == second.line
    assert first.column != second.column
