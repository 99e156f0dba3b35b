"""The table with plots, as a notebook saves it."""

import re

import jax
import jax.numpy as jnp
import numpy as np

import jupyter_jaxcb as jaxcb


def page(xs, **numbers):
    def step(_, x):
        y = x * 2
        return _, y

    with jaxcb.watching("y", **numbers) as seen:
        jax.block_until_ready(jax.lax.scan(step, 0, jnp.asarray(xs, jnp.float32)))
    return seen._repr_html_()


def test_large_plot_has_a_curve_for_each_value_of_a_small_array():
    xs = np.arange(11.0)[:, None] * [1, 2, 5]
    curves = re.findall(r'class="jaxcb-plot-each" points="([^"]+)"', page(xs))
    ends = [float(curve.split()[-1].split(",")[1]) for curve in curves]
    assert ends == [104, 78, 0]  # of 130, from the top
    assert 'class="jaxcb-plot-each"' not in page(np.ones((3, 9)))


def test_what_a_notebook_saves_does_not_grow_with_the_steps():
    few, many = (len(page(np.sin(np.arange(count))[:, None])) for count in (1_000, 10_000))
    assert many < 1.2 * few < 40_000


def marks_of(f, x):
    with jaxcb.watching() as seen:
        jax.block_until_ready(jax.jit(f)(jnp.float32(x)))
    return seen, {one.name: mark for one, mark in seen.marked() if mark}


def test_first_bad_value_is_told_from_those_that_follow_and_from_another_origin():
    def f(x):
        a = jnp.log(x)
        b = a + 1
        c = jnp.sqrt(x)
        d = c * b
        good = x * 2
        return d, good

    seen, marks = marks_of(f, -1)
    assert {name: marks[name] for name in "abcd"} == {
        "a": "first", "b": "later", "c": "bad", "d": "later"
    }  # fmt: skip
    assert "good" not in marks
    rows = re.findall(r'<tr class="jaxcb-watch-(\w+)".*?<code>(\w+)', seen._repr_html_())
    assert dict((name, mark) for mark, name in rows if name in "abcd") == {
        name: marks[name] for name in "abcd"
    }
    (line,) = (line for line in str(seen).splitlines() if line.endswith("← first bad value"))
    assert line.split()[1] == "a"


def test_scan_whose_body_made_the_bad_value_is_no_origin_itself():
    def f(x):
        def step(x, _):
            y = jnp.sqrt(x)
            return y - 2, y

        last, ys = jax.lax.scan(step, x, length=3)
        return last, ys

    _, marks = marks_of(f, 3)
    assert (marks["y"], marks["last"], marks["ys"]) == ("first", "later", "later")


def test_bad_value_that_was_given_is_reported_where_it_is_used_first():
    def f(x):
        y = x + 1
        z = y * 2
        return z

    with jaxcb.watching() as seen:
        out = jax.jit(f)(np.float32("nan"))
    assert np.isnan(out)
    assert "`x + 1` gave NaN, forward; its inputs were bad too" in str(seen.first_bad)
    marks = {one.name: mark for one, mark in seen.marked()}
    assert marks == {"y": "first", "z": "later", "out": "later"}


def test_each_line_of_the_page_has_its_place_in_order():
    seen, _ = marks_of(lambda x: jnp.log(x), -1)
    page, spots = seen.page("above")
    titles = re.findall(r'class="jaxcb-place" title="([^"]+)"', page)
    assert titles == [f"line {spot.line}" for spot in spots]
    assert spots[0].line == seen.first_bad.line
