"""Programs of their own are left alone by the doctests."""

import pytest

from tests.notebook.conftest import _shared_kernel, fresh_kernel, kernel, terminal  # noqa: F401

collect_ignore = ["devices.py"]
pytest.register_assert_rewrite(f"{__package__ or 'tests.explain'}._same")
