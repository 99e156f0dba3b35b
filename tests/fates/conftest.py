"""Programs of their own are left alone by the doctests."""

import pytest

collect_ignore = ["devices.py"]
pytest.register_assert_rewrite(f"{__package__ or 'tests.fates'}._battery")
