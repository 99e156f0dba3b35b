"""The table with plots, as a notebook saves it."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb


def page(xs, **numbers):
    def step(_, x):
        y = x * 2
        return _, y

    with jaxcb.watching("y", **numbers) as seen:
        jax.block_until_ready(jax.lax.scan(step, 0, jnp.asarray(xs, jnp.float32)))
    return seen._repr_html_()


def heights(points):
    """Return the heights of a band at the first and at the last step, from its upper edge down."""
    ys = [float(pair.split(",")[1]) for pair in points.split()]
    half = len(ys) // 2
    return [ys[half - 1] - ys[half], ys[0] - ys[-1]]


def test_large_plot_has_a_band_of_the_range_and_one_within_for_each_pair_of_quantiles():
    xs = np.arange(101.0) * np.array([[1.0], [0.5]])
    text = page(xs, p25=lambda x: jnp.quantile(x, 0.25), p75=lambda x: jnp.quantile(x, 0.75))
    around, within = re.findall(r'class="band" points="([^"]+)"', text)
    assert heights(around) == [65.0, 130.0]
    assert heights(within) == pytest.approx([32.5, 65.0], abs=0.2)  # written with one digit
    assert text.count("<svg") == 2  # the small plot and the large one


def test_large_plot_has_a_curve_for_each_value_of_a_small_array():
    xs = np.arange(11.0)[:, None] * [1, 2, 5]
    curves = re.findall(r'class="each" points="([^"]+)"', page(xs))
    ends = [float(curve.split()[-1].split(",")[1]) for curve in curves]
    assert ends == [104, 78, 0]  # of 130, from the top
    assert 'class="each"' not in page(np.ones((3, 9)))


def test_other_numbers_of_the_user_have_plots_of_their_own():
    text = page(np.ones((3, 4)) * [[1], [2], [3]], norm=jnp.linalg.norm)
    assert text.count("<svg") == 3
    own = text.partition("<div>norm</div>")[2]
    assert re.findall(r'class="axis"[^>]*>([^<]+)', own) == ["12", "4", "step 0", "step 2"]


def test_plot_of_such_a_number_has_no_curves_of_the_variable():
    text = page(np.ones((3, 4)) * [[1], [2], [3]], norm=jnp.linalg.norm)
    plot, own = text.split("<div>norm</div>")
    assert plot.count('class="each"') == 4
    assert 'class="each"' not in own


@pytest.mark.parametrize("constant", [0.0, 1.0, 2.0**100])
def test_curve_of_a_constant_is_in_the_middle_of_its_plots(constant):
    text = page(np.full((3, 9), constant))
    lines = re.findall(r'class="line" points="([^"]+)"', text)
    assert [line.split()[0] for line in lines] == ["0.0,9.0", "0.0,65.0"]  # of 18 and of 130


def test_what_a_notebook_saves_does_not_grow_with_the_steps():
    few, many = (len(page(np.sin(np.arange(count))[:, None])) for count in (1_000, 10_000))
    assert many < 1.2 * few < 40_000
