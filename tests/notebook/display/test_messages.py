"""The front end is tested with the messages that Python sends today.

JAXCB_WRITE_GOLDEN=1 rewrites the file after an intended change.
"""

import json
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.diagnostics import Series
from jupyter_jaxcb.diagnostics.notes import Totals
from jupyter_jaxcb.notebook.display import LineValues, Origins, Sites, snapshot
from jupyter_jaxcb.recording import (
    VMAP_METHODS,
    Aval,
    LoweredSite,
    Recorder,
    Site,
    VmapLevel,
    record_call,
)
from jupyter_jaxcb.report import LONG_NS, SCHEMA, Progress, SiteProgress

FILE = Path(__file__).parents[2] / "data" / "messages.json"
CELL, SOURCE = "<cell>", "def bessel(z):\n    return z"
BESSEL = Site("pure", "bessel", CELL, 4, 11, cell=True, source="return bessel(1, z)")
LOG = Site("io", "log", "model.py", 9, 0, cell=False, source="log(i, loss)")
FACTS = (
    LoweredSite(
        BESSEL, None, -1, (Aval((3, 5), "float32"),), (Aval((3, 5), "float32"),),
        (VmapLevel(3, VMAP_METHODS["expand_dims"], (True,)),), operand_names=("z",),
    ),
    LoweredSite(LOG, None, -1, (Aval((), "int32"),), ()),
)  # fmt: skip


def recorder():
    """Return a recorder of one call of each site; that of `log` failed."""
    made = Recorder(clock=lambda: 0)
    for fact, error in zip(FACTS, (None, "ValueError: no luck"), strict=True):
        record_call(made, fact, 1, 5_000, 46_000, error)
    return made


def panel():
    """Return a snapshot with a registered callback, a finished site and one of a running cell."""
    names = {}
    exec(compile(SOURCE, CELL, "exec"), names)
    callback = jaxcb.pure(names["bessel"], result="z", vmap_method="expand_dims")
    compiler = SimpleNamespace(get_code_name=lambda *_: CELL)
    origins = Origins(SimpleNamespace(compile=compiler))
    origins.begin(SimpleNamespace(cell_id="cell-1", raw_cell=SOURCE))
    known = Sites()
    known.add(recorder().freeze())
    values = LineValues(origins)
    values.add([(variable(), "first")])
    sent = snapshot(
        {"bessel": callback}, known, origins, running=True, values=values.to_json(),
        live=[SiteProgress(LOG, 5, 2, 70)],
    )  # fmt: skip
    return {"schema": SCHEMA, "type": "snapshot", "version": "0.1.0", **sent}


def variable():
    """Return a variable that was NaN in the last two of its three steps."""
    known, bad = np.array([[0.5], [np.nan], [np.nan]]), np.array([[0], [1], [1]])
    return Series(
        CELL, 2, "bessel", "return z", "bessel()", "forward", (), "float32", (), 1, 3,
        np.arange(3)[:, None], known, known, known, bad, 0 * bad, {}, np.zeros((3, 0)),
        Totals(0.5, 0.5, 2, 0),
    )  # fmt: skip


def progress():
    """Return the progress of a cell in which a call of `log` has been running for long."""
    recorded, total = recorder().snapshot(Recorder().mark(), 0), Progress(0)
    total.add(recorded)
    running = SimpleNamespace(
        lowered=FACTS[1], element=-1, thread="main", start_ns=1, returned=0, returned_ns=0
    )
    return total.to_message(recorded, 2 * LONG_NS, [running])


def test_messages_of_the_file_are_those_of_today():
    found = json.loads(json.dumps({"snapshot": panel(), "progress": progress()}))
    if os.environ.get("JAXCB_WRITE_GOLDEN") == "1":
        FILE.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    assert json.loads(FILE.read_text(encoding="utf-8")) == found
