import warnings

import pytest

import jupyter_jaxcb as jaxcb


@pytest.fixture(autouse=True)
def _registered_in_silence():
    """What breaks a contract here may be reported when it is registered, too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jaxcb.ImpureFunctionWarning)
        yield
