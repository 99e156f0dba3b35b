"""``JUPYTER_JAXCB=off`` turns recording and displays off; callbacks run as usual."""

from __future__ import annotations

import os

VARIABLE = "JUPYTER_JAXCB"


def is_off() -> bool:
    """Whether the environment turns recording off."""
    return os.environ.get(VARIABLE, "").strip().lower() == "off"
