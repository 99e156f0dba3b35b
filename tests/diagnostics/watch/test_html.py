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
    curves = re.findall(r'class="each" points="([^"]+)"', page(xs))
    ends = [float(curve.split()[-1].split(",")[1]) for curve in curves]
    assert ends == [104, 78, 0]  # of 130, from the top
    assert 'class="each"' not in page(np.ones((3, 9)))


def test_what_a_notebook_saves_does_not_grow_with_the_steps():
    few, many = (len(page(np.sin(np.arange(count))[:, None])) for count in (1_000, 10_000))
    assert many < 1.2 * few < 40_000
