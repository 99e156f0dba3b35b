"""Results of callbacks in a ``shard_map`` vary over the mesh axes of their arguments."""

from pathlib import Path

import numpy as np
import pytest

X = np.linspace(0.1, 1, 8, dtype=np.float32)
ONE = {
    "pure": lambda x: x + 1,
    "io": lambda x: x + 1,
    "buffer": lambda x: 2 * x,
    "tap": lambda x: x,
    "drop-in pure": lambda x: x + 1,
    "drop-in io": lambda x: x + 1,
}


@pytest.fixture(scope="module")
def found(in_process):
    return in_process(Path(__file__).with_name("varying.py"), devices=4).value


def check_equal(row):
    got, wanted = row["values"]
    np.testing.assert_allclose(got, wanted, rtol=3e-5, atol=1e-6)


@pytest.mark.parametrize("rule", ["jvp", "vjp", "finite"])
def test_gradient_is_not_multiplied_by_the_number_of_shards(found, rule):
    check_equal(found[f"gradient, {rule}"])


@pytest.mark.parametrize("rule", ["jvp", "vjp", "finite"])
def test_gradient_of_an_argument_that_all_devices_share_is_summed_over_them(found, rule):
    check_equal(found[f"replicated, {rule}"])


def test_result_varies_over_the_axes_of_all_arguments(found):
    check_equal(found["two axes"])


@pytest.mark.parametrize("flavor", ONE)
@pytest.mark.parametrize("loop", ["carried", "carried_by_while"])
def test_result_can_be_carried_by_a_loop(found, loop, flavor):
    (got,) = found[f"{flavor}, {loop}"]["values"]
    np.testing.assert_allclose(got, ONE[flavor](ONE[flavor](X)), rtol=1e-6)


@pytest.mark.parametrize("flavor", ONE)
def test_out_specs_that_would_drop_shards_are_refused(found, flavor):
    assert "out_specs is P" in found[f"{flavor}, dropped"]["error"]
