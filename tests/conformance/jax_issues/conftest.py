import json
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def child(in_process):
    """``child(program, **options)`` runs a script of this folder and returns the JSON it prints."""

    def run(program, devices=1, **options):
        path = Path(__file__).with_name(program)
        return in_process(path, json.dumps(options), devices=devices).value

    return run
