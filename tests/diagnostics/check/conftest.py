import warnings

import pytest

import jupyter_jaxcb as jaxcb


@pytest.fixture(autouse=True)
def _no_warnings_when_registering():
    """Some host functions break their contract visibly, so registering them warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jaxcb.ImpureFunctionWarning)
        yield
