"""What every display says about a call site: its JSON, and its parts."""

import dataclasses

import jsonschema
import pytest

from jupyter_jaxcb.report import Located
from tests._site_schema import check_site, complete
from tests.interface import (
    Aval,
    Frame,
    LoweredSite,
    Outcome,
    Program,
    Progress,
    Reason,
    Recorder,
    Site,
    SiteProgress,
    Status,
    finished,
    record_call,
    summarize,
    to_message,
    to_page,
    unfinished,
)

from ._several import called, data_of, f32, level

BESSEL = Site("pure", "bessel", "<cell>", 4, 11, cell=True, source="bessel(1, z)")
REQUIRED = {"function", "flavor", "where", "line", "cell_line"}


def test_sites_of_other_cells_and_their_callers_are_numbered():
    """Only in what may change from run to run."""
    caller = Frame("f", "<other>", 2, 0, cell=True)
    facts = [
        LoweredSite(Site("io", "log", file, 4, 0, True, "log(x)", callers), None, n, (), ())
        for n, (file, callers) in enumerate(
            [("<cell>", ()), ("<cell>", (caller,)), ("<other>", ())]
        )
    ]
    sites, measured, _ = to_message(
        dataclasses.replace(called(*facts, cells=["<cell>"]), numbers={"<other>": 21})
    )
    found = zip(sites["sites"], measured["sites"], strict=True)
    assert {site["where"]: more["numbered"] for site, more in found} == {
        "line 4": "",
        "line 4 (from f, line 2, another cell)": "line 4 (from f, [21] line 2)",
        "line 4, another cell": "[21] line 4",
    }


def merged(facts, measured):
    return [one | other for one, other in zip(facts["sites"], measured["sites"], strict=True)]


def test_every_producer_makes_the_same_json_of_a_finished_site():
    """Of an elided call, and of one of a batch with a mask."""
    recorder, program = Recorder(clock=lambda: 0), Program("jit_f", "cpu")
    levels, operands = (level(3, "expand_dims", (True, False)),), (f32(3), Aval((1,), "bool"))
    fact = LoweredSite(BESSEL, program, 0, operands, operands[:1], levels, masked=True)
    recorder.lowered(fact)
    record_call(recorder, fact, 1, 5_000, 46_000)
    unused = Site("pure", "model", "<cell>", 3, 4, cell=True, source="model(z)")
    recorder.add_outcome(
        Outcome(unused, program, Status.UNUSED, written=1, compiled=0, reason=Reason.UNUSED)
    )
    run = recorder.freeze(cells=["<cell>"])

    def place(file, line):
        return Located("cell-1", line + 1)

    found = [finished(one, place=place, values=True).to_json() for one in summarize(run)]
    data, measured = data_of(run, values=True, place=place)
    assert "cell-1" not in str(data)  # a notebook that runs again in another one saves the same
    saved = merged(data, measured)
    assert [complete(one) for one in saved] == merged(*to_message(run, place=place)[:2]) == found
    elsewhere = [{**one, "cell_id": None, "cell_line": one["line"]} for one in found]
    page = to_page(run)
    assert merged(page["facts"], page["measured"]) == elsewhere
    for one in saved + found:
        check_site(one)
    assert [(one["cell_id"], one["cell_line"]) for one in found] == [("cell-1", 4), ("cell-1", 5)]
    rows = found[1]["shapes"][0]["diagram"]["rows"]
    assert [(name, axes) for name, axes, *_ in rows] == [
        ("argument", [["batched", 3]]),
        ("mask", [["size1", 1]]),
        ("result", [["batched", 3]]),
    ]


@pytest.mark.kept
@pytest.mark.parametrize("error", ["KeyboardInterrupt: ", "EndedError: its run was interrupted"])
def test_call_that_the_user_stopped_is_no_failure_anywhere(error):
    recorder = Recorder(clock=lambda: 0)
    fact = LoweredSite(BESSEL, None, -1, (Aval((), "float32"),), (Aval((), "float32"),))
    mark = recorder.mark()
    record_call(recorder, fact, 1, 0, 10)
    record_call(recorder, fact, 1, 10, 20, error)
    snapshot, progress = recorder.snapshot(mark, 0), Progress(0)
    progress.add(snapshot)
    (live,) = progress.sites(snapshot.lowered)
    assert (live.calls, live.errors) == (2, 0)
    (done,) = map(finished, summarize(recorder.freeze()))
    assert (done.consequence, done.errors) == ("stopped", ())
    _, measured, columns = to_message(recorder.freeze())
    assert (columns.rows, measured["errors"]) == (2, ["stopped by you"])


@pytest.mark.kept
@pytest.mark.parametrize(
    ("seconds", "consequence", "words"),
    [
        (0.5, "kept", []),
        (4.9, "kept", [["running 4 s", True]]),
        (14.2, "running", [["running 14 s", True]]),
    ],
)
def test_site_says_for_how_long_its_call_has_been_running(seconds, consequence, words):
    progress = SiteProgress(BESSEL, 0, 0, 0, int(seconds * 1e9))
    running = unfinished(progress, "line 4").to_json()
    check_site(running)
    assert (running["consequence"], running["figures"]) == (consequence, words)
    failed = unfinished(progress._replace(calls=1, errors=1), "line 4")
    assert failed.consequence == "raised"


def test_schema_refuses_a_site_without_one_of_its_properties_or_with_another():
    fact = LoweredSite(BESSEL, None, 0, (f32(3),), (), (level(3, "expand_dims", (True,)),))
    whole = finished(summarize(called(fact))[0]).to_json()
    check_site(whole)
    for name, value in whole.items():
        without = {key: one for key, one in whole.items() if key != name}
        if name not in REQUIRED:
            check_site(without)
        for bad in ({**whole, name: {}}, {**whole, f"{name}s": value}, without):
            if bad is not without or name in REQUIRED:
                with pytest.raises(jsonschema.ValidationError):
                    check_site(bad)
