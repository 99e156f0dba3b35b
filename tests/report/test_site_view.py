"""What every display says about a call site: its JSON, and its parts."""

import dataclasses

import jsonschema
import pytest

from jupyter_jaxcb.recording import VMAP_METHODS, Frame, Outcome, Program, Reason, Status, VmapLevel
from jupyter_jaxcb.report import MIME_TYPE, Located, to_mimebundle
from jupyter_jaxcb.report.frontend import to_page
from tests._site_schema import check_site, complete
from tests.interface import (
    Aval,
    LoweredSite,
    Progress,
    Recorder,
    Site,
    SiteProgress,
    finished,
    record_call,
    summarize,
    to_message,
    unfinished,
)

BESSEL = Site("pure", "bessel", "<cell>", 4, 11, cell=True, source="bessel(1, z)")
UNUSED = Site("pure", "model", "<cell>", 3, 4, cell=True, source="model(z)")
PROGRAM = Program("jit_f", "cpu")


REQUIRED = {"function", "flavor", "where", "line", "cell_line"}


def recording(took=41_000):
    """Return a recording with a masked, batched call and an elided one."""
    recorder = Recorder(clock=lambda: 0)
    levels = (VmapLevel(3, VMAP_METHODS["expand_dims"], (True, False)),)
    fact = LoweredSite(
        BESSEL, PROGRAM, 0, (Aval((3,), "float32"),), (Aval((3,), "float32"),), levels, masked=True
    )
    recorder.bound(BESSEL)
    recorder.bound(UNUSED)
    recorder.lowered(fact)
    record_call(recorder, fact, 1, 5_000, 5_000 + took)
    recorder.add_outcome(
        Outcome(UNUSED, PROGRAM, Status.UNUSED, written=1, compiled=0, reason=Reason.UNUSED)
    )
    return recorder.freeze(cells=["<cell>"])


def place(file, line):
    return Located("cell-1" if file == "<cell>" else None, line + 1)


def merged(facts, measured):
    return [one | other for one, other in zip(facts["sites"], measured["sites"], strict=True)]


def test_sites_of_other_cells_and_their_callers_are_numbered():
    """Only in what may change from run to run."""
    here, there = ("<cell>", 1), ("<other>", 21)
    numbers = dict([here, there])
    caller = Frame("f", "<other>", 2, 0, cell=True)
    sites = [
        Site("io", "log", file, 4, 0, cell=True, source="log(x)", callers=callers)
        for file, callers in (("<cell>", ()), ("<cell>", (caller,)), ("<other>", ()))
    ]
    recorder = Recorder(clock=lambda: 0)
    for number, site in enumerate(sites):
        recorder.bound(site)
        fact = LoweredSite(site, None, number, (), (), ())
        recorder.lowered(fact)
        record_call(recorder, fact, 1, 5_000, 6_000)
    run = recorder.freeze(cells=["<cell>"])
    facts, measured, _ = to_message(
        run, place=lambda file, line: Located(None, line, numbers[file])
    )
    found = {
        fact["where"]: site["numbered"]
        for fact, site in zip(facts["sites"], measured["sites"], strict=True)
    }
    assert found == {
        "line 4": "",
        "line 4 (from f, line 2, another cell)": "line 4 (from f, [21] line 2)",
        "line 4, another cell": "[21] line 4",
    }


def test_every_producer_makes_the_same_json_of_a_finished_site():
    run = recording()
    data, metadata = to_mimebundle(run, values=True, place=place)
    message = to_message(run, place=place)
    page = to_page(run)
    views = [finished(one, place=place, values=True) for one in summarize(run)]
    found = [view.to_json() for view in views]
    saved = merged(data[MIME_TYPE], metadata[MIME_TYPE])
    for one in saved:
        check_site(one)
    assert [complete(one) for one in saved] == merged(*message[:2]) == found
    elsewhere = [{**one, "cell_id": None, "cell_line": one["line"]} for one in found]
    assert merged(page["facts"], page["measured"]) == elsewhere
    for one in found:
        check_site(one)
    assert [(one["cell_id"], one["cell_line"]) for one in found] == [("cell-1", 4), ("cell-1", 5)]
    assert found[1]["shapes"][0]["axes"] == [
        {"operands": ["batched"], "results": "batched", "mask": "size1"}
    ]


def test_how_calls_are_made_is_a_figure_that_badges_say():
    """In one word, which is the first of a note."""
    (summary, _) = summarize(recording())
    notes = ("queued: it does not wait", "no argument is batched: x", "compiled by numba: ...")
    made = finished(dataclasses.replace(summary, notes=notes))
    assert made.to_json()["figures"] == [["queued", True], ["compiled", True]]


def test_facts_and_measurements_have_no_property_in_common():
    for view in map(finished, summarize(recording())):
        assert not view.facts().keys() & view.measured().keys()
        assert view.facts() | view.measured() == view.to_json()


def test_saved_output_has_no_default_and_no_empty_value():
    data, metadata = to_mimebundle(recording())
    facts, measured = data[MIME_TYPE], metadata[MIME_TYPE]
    assert all(facts.values()) and all(measured.values())
    for one in (*facts["sites"], *measured["sites"]):
        assert [name for name, value in one.items() if value in ([], None, "", "kept")] == []
    ((variant,),) = [one["shapes"] for one in facts["sites"] if "shapes" in one]
    assert variant.keys() == {"results", "levels", "axes", "calls", "mask"}
    assert measured["sites"][0] == {"host_ns": 0, "cell_line": 3}


def test_facts_are_the_same_for_other_times_and_cells():
    facts = [finished(one).facts() for one in summarize(recording())]
    again = [finished(one, place=place).facts() for one in summarize(recording(took=9))]
    assert facts == again


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


@pytest.mark.parametrize("failed", [0, 1_200])
def test_site_of_a_running_cell_has_the_same_properties(failed):
    running = unfinished(SiteProgress(BESSEL, 5_000, failed, 70), "line 4", place).to_json()
    check_site(running)
    (done, _) = (finished(one).to_json() for one in summarize(recording()))
    assert list(running) == list(done)
    said = (running["consequence"], running["errors"])
    assert said == (("raised", ["1,200 failed"]) if failed else ("kept", []))


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


@pytest.mark.parametrize("name", finished(summarize(recording())[0]).to_json())
def test_schema_refuses_a_site_without_one_of_its_properties_or_with_another(name):
    site = finished(summarize(recording())[0]).to_json()
    with pytest.raises(jsonschema.ValidationError):
        check_site({**site, name: {}})
    with pytest.raises(jsonschema.ValidationError):
        check_site({**site, f"{name}s": site[name]})
    del site[name]
    if name in REQUIRED:
        with pytest.raises(jsonschema.ValidationError):
            check_site(site)
    else:
        check_site(site)
