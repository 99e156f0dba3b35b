"""The extension on two ipyparallel engines, which run ``%%px`` cells from a terminal."""

import json
import re
from pathlib import Path

import pytest

MIME_TYPE = "application/vnd.jupyter-jaxcb.recording.v1+json"


@pytest.fixture(scope="module")
def ran(in_process):
    return in_process(Path(__file__).with_name("engines.py"))


@pytest.fixture(scope="module")
def found(ran):
    return json.loads(ran.stdout.splitlines()[-1])


def traces(cell):
    return [output for output in cell["outputs"] if MIME_TYPE in output["data"]]


def shown(cell):
    """Return all text of a cell, without colors."""
    texts = [output["data"].get("text/plain", "") for output in cell["outputs"]]
    return re.sub(r"\x1b\[[0-9;]*m", "", "\n".join([cell["stdout"], cell["stderr"], *texts]))


@pytest.mark.long
def test_loading_breaks_no_output_of_later_cells(ran, found):
    """The engines open no comm: the client takes comms for widgets and fails without ipywidgets."""
    assert "Uncaught exception" not in ran.stderr + found["loaded"]["stderr"]
    for name in ("loaded", "imported", "registered"):
        assert found[name]["raised"] == ""
    assert "I am 0" in shown(found["imported"]) and "I am 1" in shown(found["imported"])


def test_every_engine_shows_its_host_trace(found):
    """The metadata is included, so that the front end of a notebook shows the calls too."""
    outputs = traces(found["recorded"])
    texts = [output["data"]["text/plain"] for output in outputs]
    assert [re.search(r"· (\d) calls ·", text)[1] for text in texts] == ["2", "3"]
    for output in outputs:
        assert "text/html" in output["data"] and MIME_TYPE in output["metadata"]


def test_client_can_pull_recordings(found):
    assert found["pulled"] == [f"<Recording of {calls} host calls from 1 site>" for calls in (2, 3)]


def test_every_engine_shows_the_users_exception(found):
    text = shown(found["failed"])
    assert found["failed"]["raised"]
    assert len(re.findall(r"^ValueError: no luck$", text, re.MULTILINE)) == 2
    assert text.count("raised by the pure callback unlucky") == 2
    assert "JaxRuntimeError" not in text


def test_magics_work_on_every_engine(found):
    assert shown(found["explained"]).count("double · pure · 1 call per run") == 2
    assert (
        len(re.findall(r"^double +pure +\[\d+\] line \d", shown(found["listed"]), re.MULTILINE))
        == 2
    )


def test_interrupt_ends_the_cell_on_every_engine_and_the_next_cell_works(found):
    assert found["interrupted"] == ["KeyboardInterrupt"] * 2
    assert shown(found["afterwards"]).count("8.0") == 2


def test_unloading_works_on_every_engine(found):
    assert found["unloaded"]["raised"] == ""
