"""A failing host function is shown by pytest as the user's own exception.

``pytest_plugins = ["jupyter_jaxcb.pytest_plugin"]`` in the topmost conftest.py, or
``pytest -p jupyter_jaxcb.pytest_plugin``. It is not loaded by itself: that would import JAX before
a conftest.py can say on which platform it is to run.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from .stack import seen_by_user


# trylast: next to what makes the report, so that marks such as xfail see what was raised.
@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Reports the host function's exception at the user's lines, in place of JAX's of it."""
    error = call.excinfo
    seen = None if error is None else seen_by_user(error.value, error.tb)
    original, frames = seen or (None, None)
    if isinstance(original, Exception) and frames is not None:
        call.excinfo = pytest.ExceptionInfo.from_exc_info((type(original), original, frames))
    try:
        return (yield)
    finally:
        call.excinfo = error
