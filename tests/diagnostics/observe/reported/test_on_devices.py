"""A warning names the calls of JAX's own callbacks whose results are on one of several devices."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.kept


@pytest.fixture(scope="module")
def ran(in_process):
    return in_process(Path(__file__).with_name("on_devices.py"), devices=2).value


@pytest.mark.parametrize("program", ["pure", "io", "over_batch", "inner", "eager", "eager io"])
def test_result_that_is_zeros_on_another_device_is_named(ran, program):
    ((_, other),), warned = ran["found"][program]
    assert not any(other)  # zeros, as JAX leaves them; if a later JAX does not, there is no warning
    ((line, text),) = warned
    flavor = "io" if program.endswith("io") else "pure"
    assert text.startswith(f"a result of the jax {flavor} callback host (on_devices.py:{line})")
    assert "on one device only; on the others it is zeros" in text
    assert line == ran["lines"][flavor] or program == "over_batch"


def test_several_calls_that_may_have_returned_it_are_all_named(ran):
    ((_, text),) = ran["found"]["two"][1]
    lines = ran["lines"]
    assert text.startswith(
        f"a result of the jax pure callback host (on_devices.py:{lines['pure']}) or "
        f"the jax io callback host (on_devices.py:{lines['io']}) is returned"
    )


@pytest.mark.parametrize(
    "program",
    ["used", "with out_shardings", "constrained", "looped", "debug", "ours", "one device"],
)
def test_result_that_is_on_all_devices_causes_no_warning(ran, program):
    shards, warned = ran["found"][program]
    assert warned == []
    assert all(any(part) for result in shards for part in result)
