import pytest

collect_ignore = ["unchanged/devices.py"]  # a script


@pytest.fixture(autouse=True)
def _nothing_compiled_before(nothing_compiled_before):
    pass
