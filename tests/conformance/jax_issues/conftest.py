import json
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def child(in_process):
    """``child(program, **options)``: the JSON a program of this folder prints at its end."""

    def run(program, devices=1, **options):
        place = Path(__file__).with_name(program)
        return in_process(place, json.dumps(options), devices=devices).value

    return run
