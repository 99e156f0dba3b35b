"""Saving replaces a file completely or not at all, and touches no other file."""

import gzip
import os
import stat
import threading

import pytest

from jupyter_jaxcb.recording import FORMATS, LoweredSite, Program, Recorder, Site, load, record_call
from tests.interface import Recording


def recorded():
    site = Site("pure", "bessel", "<cell>", 4, 11, cell=True)
    fact = LoweredSite(site, Program("jit_f", "cpu", 1), 0, (), ())
    recorder = Recorder()
    for start in range(3):
        record_call(recorder, fact, 1, start, start + 1, "ValueError: no luck")
    return recorder.freeze()


RECORDED = recorded()


def test_unknown_suffix_is_refused_with_a_list_of_the_known_ones(tmp_path):
    with pytest.raises(ValueError, match=r"'calls.xls'.*\.jaxcb.*\.json"):
        Recording().save(tmp_path / "calls.xls")


def test_failed_save_leaves_the_older_file_unchanged(tmp_path, monkeypatch):
    path = tmp_path / "a.jaxcb"
    path.write_bytes(b"older")
    monkeypatch.setattr(gzip.GzipFile, "write", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        RECORDED.save(path)
    assert path.read_bytes() == b"older"
    assert [file.name for file in tmp_path.iterdir()] == ["a.jaxcb"]


def test_two_concurrent_saves_do_not_collide(tmp_path, monkeypatch):
    path, write, depth = tmp_path / "a.json", FORMATS[".json"], []

    def meanwhile(recording, file):
        write(recording, file)
        if not depth:
            depth.append(1)
            Recording(threads=("inner",)).save(path)
            assert load(path).threads == ("inner",)

    monkeypatch.setitem(FORMATS, ".json", meanwhile)
    RECORDED.save(path)
    assert len(load(path)) == len(RECORDED)
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
@pytest.mark.parametrize("suffix", FORMATS)
def test_error_of_a_full_device_names_the_users_path(suffix, tmp_path):
    path = tmp_path / f"full{suffix}"
    path.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left") as raised:
        RECORDED.save(path)
    assert raised.value.filename == str(path)
    assert list(tmp_path.iterdir()) == [path] and path.is_symlink()


def test_recording_can_be_saved_to_a_pipe(tmp_path):
    path, read = tmp_path / "pipe.json", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()
    RECORDED.save(path)
    reader.join()
    assert Recording.from_json(read[0].decode()).to_json() == RECORDED.to_json()
    assert stat.S_ISFIFO(path.stat().st_mode)


@pytest.mark.parametrize(
    "where", ["missing/a.json", "folder.json", "loop.json", "x" * 300 + ".json"]
)
def test_error_of_an_unwritable_path_names_the_users_path(where, tmp_path):
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "loop.json").symlink_to(tmp_path / "loop.json")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(OSError) as raised:
        RECORDED.save(tmp_path / where)
    assert raised.value.filename == str(tmp_path / where)
    assert sorted(tmp_path.rglob("*")) == before


def test_save_replaces_the_target_of_a_link_and_keeps_its_mode(tmp_path):
    (tmp_path / "real").mkdir()
    real, link = tmp_path / "real" / "there.json", tmp_path / "a.json"
    real.write_bytes(b"older")
    real.chmod(0o640)
    link.symlink_to(real)
    RECORDED.save(link)
    assert link.is_symlink() and len(load(real)) == len(RECORDED)
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert {file.name for file in tmp_path.rglob("*")} == {"real", "there.json", "a.json"}
