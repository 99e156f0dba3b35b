"""``JUPYTER_JAXCB=off``: nothing is recorded or shown in a process; callbacks run as they are."""

from __future__ import annotations

import os

VARIABLE = "JUPYTER_JAXCB"


def is_off() -> bool:
    """Whether the environment turns recording off."""
    return os.environ.get(VARIABLE, "").strip().lower() == "off"
