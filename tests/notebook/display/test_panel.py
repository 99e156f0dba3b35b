"""The data of the side panel and the badges, as built from facts."""

from jupyter_jaxcb.notebook.display import Origins, Sites, snapshot
from jupyter_jaxcb.recording import Aval, LoweredSite, Recorder, Site, record_call
from jupyter_jaxcb.report import SiteProgress
from tests._site_schema import check_site


def test_site_of_the_running_cell_that_failed_is_marked_before_the_cell_ends():
    sites = [Site("io", "step", f"{name}.py", 3, 0, False) for name in ("works", "fails")]
    live = [SiteProgress(site, 5, errors, 10) for site, errors in zip(sites, (0, 2), strict=True)]
    sent = snapshot({}, Sites(), Origins(None), running=True, live=live)
    for site in sent["sites"]:
        check_site(site)
    works, fails = sent["sites"]
    assert (works["consequence"], works["errors"]) == ("kept", [])
    assert (fails["consequence"], fails["errors"]) == ("raised", ["2 failed"])


def test_site_with_thousands_of_shapes_sends_the_first_hundred():
    recorder = Recorder(clock=lambda: 0)
    site = Site("io", "step", "model.py", 3, 0, False)
    for size in range(2_000):
        fact = LoweredSite(site, None, -1, (Aval((size,), "float32"),), ())
        record_call(recorder, fact, 1, 0, 10)
    known = Sites()
    known.add(recorder.freeze())
    (sent,) = snapshot({}, known, Origins(None), running=False)["sites"]
    check_site(sent)
    assert sent["calls"] == 2_000
    assert [one["shapes"] for one in sent["shapes"]] == [f"({n},) → nothing" for n in range(100)]
    assert sent["variants_ns"] == [10] * 100
