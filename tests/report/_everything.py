"""A recording with every kind of fact, and what its reports make of it."""

import dataclasses
import io
import json

import numpy as np

from tests.interface import (
    FORMATS,
    VMAP_METHODS,
    Aval,
    Frame,
    JaxUse,
    LoweredSite,
    MaskUse,
    Note,
    NoteKind,
    NotKept,
    ObjectUse,
    Outcome,
    Program,
    QueueUse,
    Reason,
    Recorder,
    Recording,
    Running,
    Site,
    Status,
    VmapLevel,
    Worker,
    cost_to_text,
    outcome_to_text,
    record_call,
    record_elements,
    to_message,
    to_mimebundle,
)

from . import test_golden

_HERE = Frame("train", "/home/me/train.py", 8)


def everything():
    """Return a recording in which no field is empty, with three sites."""
    recorder = Recorder(clock=lambda: 0)
    program, z, mask = Program("jit_g", "cpu", 2), Aval((3, 5), "float32"), Aval((3,), "bool")
    masked = Site("io", "store", "/home/me/data.py", 3, 2, cell=False, source="store(z, where=m)",
                  callers=(_HERE, Frame("scan", "/lib/loops.py", 90, library=True)))  # fmt: skip
    level = VmapLevel(3, VMAP_METHODS["expand_dims"], (True, True), "batch")
    fact = LoweredSite(
        masked, program, 0, (z, mask), (z,), (level,), 1, 2, 0, "cpu:0", 60, 1,
        ("z['deep']",), ("kept",), queued=True, masked=True,
    )  # fmt: skip
    recorder.lowered(fact)
    record_call(recorder, fact, 1, 100, 300, "KeyError: 'gone'\nin two lines")
    loop = VmapLevel(3, VMAP_METHODS["sequential"], (True,), "rows")
    fold = Site("pure", "fold", "<cell>", 5, 1, cell=True, source="fold(z)", callers=(_HERE,))
    looped = LoweredSite(fold, program, 1, (z,), (z,), (loop,), operand_names=("z",))
    recorder.lowered(looped)
    record_elements(recorder, looped, 1, [0, 1, 2], [400, 500, 600, 700], 3)
    use = JaxUse("jax.numpy.max", "/home/me/helper.py", 7)
    notes = (
        Note(NoteKind.USES_JAX, use=use),
        Note(NoteKind.UNBATCHED, (3,)),
        Note(NoteKind.QUEUED),
    )
    more = {"around": ("scan of 5", "cond"), "stack": ("vmap", "while/body"), "notes": notes}
    for outcome in (
        Outcome(masked, program, Status.KEPT, 0, written=5, compiled=5, instructions=1, **more),
        Outcome(fold, program, Status.HOISTED, 1, written=5, compiled=1, reason=Reason.HOISTED,
                detail="RuntimeError: no text", **more),
    ):  # fmt: skip
        recorder.add_outcome(outcome)
    own, golden = recorder.freeze(cells=["<cell>"]), test_golden.recording()
    base, threads, errors = len(golden.lowered), len(golden.threads), len(golden.errors)
    calls = own.calls.copy()
    for name, more in (("lowered", base), ("thread", threads), ("crossing", 10)):
        calls[name] += more
    calls["error"][calls["error"] > 0] += errors
    profile = test_golden.profile()
    parts = [one._replace(lowered=base * (n % 2)) for n, one in enumerate(profile.parts)]
    names = (*golden.threads, *own.threads, "worker 1 · pid 77")
    return dataclasses.replace(
        golden,
        bound={**golden.bound, **own.bound, masked: 2, fold: 1},
        lowered=(*golden.lowered, *own.lowered),
        outcomes=(*golden.outcomes, *own.outcomes),
        runs={**golden.runs, program: 3},
        stale=frozenset({base}),
        calls=np.concatenate([golden.calls, calls]),
        threads=names,
        errors=(*golden.errors, *own.errors),
        environment={"jax": "0.10.2", "script": "train.py", "arguments": "--n 3", "date": "today"},
        compilations=(
            *golden.compilations,
            golden.compilations[0]._replace(program=program, weak=(True,), names=("z",)),
        ),
        running=(Running(base, 1, 4, "MainThread", 10**9, (_HERE,)),),
        workers=(Worker(len(names) - 1, "tcp://worker", 77, "right", 3),),
        not_kept=(NotKept(base, 1, 4, 2, 500),),
        queue=(QueueUse(base, 1, 2, 3, 4, 5, 6),),
        masks=(MaskUse(base, 9, 6),),
        objects=(ObjectUse("solver", 2, 3, 1, 100, 200, 5, 4096),),
        wall_ns=10**9,
        profile=profile._replace(compilations=golden.compilations, parts=tuple(parts)),
    )


def written(recording, suffix):
    """Return the content of a file that `save` would write."""
    file = io.BytesIO()
    FORMATS[suffix](recording, file)
    return file.getvalue().decode()


WHOLE = everything().to_json()


def read(data):
    """Return the recording of parsed JSON."""
    return Recording.from_json(json.dumps(data))


def reports(recording):
    """Return what every report makes of a recording, by name; a report that fails raises."""
    found = {suffix: written(recording, suffix) for suffix in FORMATS if suffix not in _BINARY}
    message = json.dumps(to_message(recording)[:2])
    return found | brief_reports(recording) | {"message": message, "calls": repr(list(recording))}


def brief_reports(recording):
    """Return the reports of which the others are made."""
    data, metadata = to_mimebundle(recording, values=True, times=True)
    return {
        "text/plain": data["text/plain"],
        "text/html": data["text/html"],
        "view": json.dumps([data, metadata]),
        "repr": repr(recording),
        "cost": cost_to_text(recording),
        "outcomes": "\n".join([*map(outcome_to_text, recording.outcomes)]),
        "elisions": "\n".join(map(str, recording.elisions)),
        ".md": written(recording, ".md"),
        ".csv": written(recording, ".csv"),
        ".perfetto.json": written(recording, ".perfetto.json"),
    }


_BINARY = (".jaxcb",)
