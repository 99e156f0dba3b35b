import pytest


@pytest.fixture(autouse=True)
def _nothing_compiled_before(nothing_compiled_before):
    pass
