"""The front end has what Python writes today: a file for its tests, and the phrases of reports.

JAXCB_WRITE_GOLDEN=1 rewrites both after an intended change.
"""

import dataclasses
import json
import os
from pathlib import Path

import numpy as np

from jupyter_jaxcb.recording import (
    VMAP_METHODS,
    Aval,
    Compilation,
    Frame,
    Lane,
    LoweredSite,
    Outcome,
    Part,
    PartKind,
    Profile,
    Program,
    Reason,
    Recorder,
    Site,
    Status,
    VmapLevel,
    record_call,
    record_elements,
)
from jupyter_jaxcb.report import MIME_TYPE, Located, to_mimebundle
from jupyter_jaxcb.report.summary import _phrases

FILE = Path(__file__).parents[1] / "data" / "recording.json"
SOURCES = Path(__file__).parents[2] / "labextension" / "src"
PHRASES = SOURCES / "view" / "data" / "phrases.json"
WRITES = os.environ.get("JAXCB_WRITE_GOLDEN") == "1"
BESSEL = Site("pure", "bessel", "<cell>", 4, 11, cell=True, source="return bessel(1, z)")
UNUSED = Site("pure", "bessel", "<cell>", 3, 4, cell=True, source="a = bessel(2, z) < 3 & z")
LOG = Site("io", "log", "/home/someone/model.py", 9, 0, cell=False, source="log(i, loss)")


def recording():
    """Return a recording with every kind of fact, but a profile."""
    recorder = Recorder(clock=lambda: 0)
    program, z, i32 = Program("jit_f", "cpu"), Aval((5,), "float32"), Aval((), "int32")
    for site in (BESSEL, UNUSED, LOG):
        recorder.bound(site)
    lowered = [
        LoweredSite(BESSEL, program, 0, (Aval((1,), "int32"), Aval((3, 5), "float32")),
                    (Aval((3, 5), "float32"),),
                    (VmapLevel(3, VMAP_METHODS["expand_dims"], (False, True)),),
                    operand_names=("order", "params['z']"), result_names=("result",)),
        LoweredSite(LOG, program, 1, (Aval((2, 4), "int32"), Aval((4,), "float32")), (),
                    (VmapLevel(4, VMAP_METHODS["sequential"], (True, True)),
                     VmapLevel(2, VMAP_METHODS["sequential"], (True, False)))),
        LoweredSite(BESSEL, None, -1, (i32, z), (z,), (), shard=1, device="cpu:1"),
    ]  # fmt: skip
    for fact in lowered[:2]:
        recorder.lowered(fact)
    crossing = record_call(recorder, lowered[0], 1, 5_000, 46_000)
    recorder.values.take(
        lowered[0], crossing, -1, [np.array([1], np.int32), np.arange(15.0)], [np.arange(15.0)]
    )
    record_elements(
        recorder, lowered[1], 1, np.array([0, 4, 1, 5]),
        [60_000, 61_000, 65_500, 66_000, 90_000], 3, "ValueError: no <b>luck</b>",
    )  # fmt: skip
    crossing = record_call(recorder, lowered[2], 2, 100_000, 2_000_100_000)
    recorder.values.take(lowered[2], crossing, -1, [np.int32(1), np.arange(5.0)], [np.arange(5.0)])
    recorder.values.not_finite(lowered[2], 1, 0)
    recorder.values.mark(lowered[2], crossing, -1, False)
    around = ("scan of 5", "branch 1 of 2")
    for outcome in (
        Outcome(UNUSED, program, Status.UNUSED, written=1, compiled=0, around=around,
                reason=Reason.UNUSED),
        Outcome(BESSEL, program, Status.KEPT, 0, written=1, compiled=1, instructions=1),
        Outcome(LOG, program, Status.KEPT, 1, written=8, compiled=8, instructions=1),
    ):  # fmt: skip
        recorder.add_outcome(outcome)
    recorder.start_counting_runs(program)
    recorder.ran(program)
    recorder.add_compilation(Compilation(program, 1, (z,), 12_000_000, 80_000_000, end_ns=4_000))
    return recorder.freeze(cells=["<cell>"], environment={"jax": "0.10.2", "backend": "cpu"})


def profile():
    """Return a profile that begins before the first call and has each kind of part."""
    place = Frame("", BESSEL.file, BESSEL.line, cell=True)
    kinds = [
        Part(kind, f"the {kind}", place, 100_000_000, 200_000_000, 3 * number, -1)
        for number, kind in enumerate(PartKind)
    ]
    parts = (*kinds, Part(PartKind.IDLE, "", None, 900_100_000, 0, 0))
    wall = sum(part.wall_ns for part in parts)
    lanes = (
        Lane("wall time", (0, 1_000_000, 0, 1_000_000, wall - 1_000_000, len(parts) - 1)),
        Lane("main thread", (500_000, 500_000, 5)),
    )
    return Profile(-500_000, wall, parts, lanes, (), 1000, 300, 5_000_000)


def written():
    profiled = dataclasses.replace(recording(), profile=profile())
    data, metadata = to_mimebundle(
        profiled, values=True, name="abc",
        place=lambda file, line: Located("cell-1" * (file == "<cell>") or None, line + 1),
    )  # fmt: skip
    metadata[MIME_TYPE]["threads"] = ["MainThread"]
    return {"data": data, "metadata": metadata}


def test_golden_file_is_up_to_date(unpacked):
    found = json.loads(json.dumps(written()))
    if WRITES:
        FILE.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    golden = json.loads(FILE.read_text())
    # Different versions of zlib may compress to different bytes.
    calls = [bundle["metadata"][MIME_TYPE].pop("calls") for bundle in (golden, found)]
    assert golden == found
    assert unpacked(calls[0]) == unpacked(calls[1])
    assert calls[0]["unit_ns"] == calls[1]["unit_ns"]
    assert len(calls[0]["crossings"]) == len(calls[1]["crossings"])


def test_front_end_has_the_phrases_of_the_reports():
    table = json.loads(json.dumps(_phrases.TABLE))
    if WRITES:
        PHRASES.write_text(json.dumps(table, indent=2, ensure_ascii=False) + "\n")
    assert json.loads(PHRASES.read_text()) == table
    code = "".join(path.read_text() for path in SOURCES.rglob("*.ts"))
    assert [name for name in table if f"phrases.{name}" not in code] == []
