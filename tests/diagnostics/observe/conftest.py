import pytest

collect_ignore = ["unchanged/devices.py"]  # a program of its own


@pytest.fixture(autouse=True)
def _in_a_jax_that_knows_nothing(nothing_compiled_before):
    pass
