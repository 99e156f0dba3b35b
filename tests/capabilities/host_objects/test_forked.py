"""Host objects in a forked child, which has one thread of its parent."""

import os
from pathlib import Path

import pytest


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_child_makes_what_was_being_made_and_closes_only_its_own(in_process):
    done = in_process(Path(__file__).with_name("forked.py"), options=("-W", "ignore"), seconds=60)
    child, parent = done.stdout.split("child ends\n")
    assert child.splitlines()[:2] == [
        "child has slow of the child", "child has kept of the parent",
    ]  # fmt: skip
    assert sorted(child.splitlines()[2:]) == [
        "closed slow of the child",
        "closed third of the child",
    ]
    first, *closed = parent.splitlines()
    assert first == "parent has slow of the parent after status 0"
    assert sorted(closed) == ["closed kept of the parent", "closed slow of the parent"]
