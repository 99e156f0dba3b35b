"""The data of the side panel and the badges, as built from facts."""

from jupyter_jaxcb.notebook.display import Origins, Sites, snapshot
from jupyter_jaxcb.recording import Site
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
