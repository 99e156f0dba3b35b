"""Programs of their own are left alone by the doctests."""

import jax
import pytest

collect_ignore = ["unchanged/devices.py"]


@pytest.fixture(autouse=True)
def _nothing_compiled_before():
    """What is traced and compiled outside of a test is another test's."""
    jax.clear_caches()
