"""Objects that are closed: once each, after their last use, also when something fails."""

import subprocess
import sys
import threading

import pytest

import jupyter_jaxcb as jaxcb


class Handle:
    def __init__(self, name):
        self.name = name


def opener(closed, **options):
    return jaxcb.host_object(close=lambda handle: closed.append(handle.name), **options)(Handle)


def test_object_that_is_pushed_out_is_closed():
    closed = []
    open_ = opener(closed, max_objects=1)
    open_("a")
    open_("b")
    assert closed == ["a"]
    open_.clear()
    assert closed == ["a", "b"]


def test_object_in_use_is_closed_after_its_last_use():
    closed = []
    open_ = opener(closed, max_objects=1)
    used = open_("a")
    open_("b")
    assert closed == []
    del used
    open_("c")
    assert sorted(closed) == ["a", "b"]


def test_no_thread_gets_a_closed_object():
    wrong = []

    class Checked(Handle):
        is_open = True

    def close(handle):
        handle.is_open = False

    open_ = jaxcb.host_object(close=close, max_objects=2)(Checked)

    def run(first):
        for n in range(3000):
            handle = open_((first + n) % 5)
            for _ in range(10):
                if not handle.is_open:
                    wrong.append(handle.name)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("size", [lambda handle: 1 / 0, lambda handle: -1])
def test_object_whose_size_fails_is_closed(size):
    closed = []
    open_ = opener(closed, size=size)
    with pytest.raises((ZeroDivisionError, ValueError)):
        open_("a")
    open_.clear()
    assert closed == ["a"]


@pytest.mark.parametrize("value", [7, None, "handle", (1, 2)])
def test_object_whose_last_use_is_not_known_is_refused(value):
    number = jaxcb.host_object(close=print)(lambda: value)
    with pytest.raises(TypeError, match="With close=, return an object of a class of its own"):
        number()


def test_error_of_close_is_raised_by_clear_after_all_are_closed():
    closed = []

    def close(handle):
        closed.append(handle.name)
        raise OSError(handle.name)

    open_ = jaxcb.host_object(close=close)(Handle)
    open_("a")
    open_("b")
    with pytest.raises(ExceptionGroup, match="closing objects of Handle failed") as caught:
        open_.clear()
    assert sorted(closed) == ["a", "b"]
    assert sorted(map(str, caught.value.exceptions)) == ["a", "b"]


def test_error_of_close_elsewhere_is_reported_and_stops_nothing(monkeypatch):
    reported = []
    monkeypatch.setattr("threading.excepthook", reported.append)

    def close(handle):
        if handle.name == "a":
            raise OSError("a")

    open_ = jaxcb.host_object(close=close, max_objects=1)(Handle)
    open_("a")
    name = open_("b").name
    assert name == "b"
    (report,) = reported
    assert str(report.exc_value) == "a"
    assert report.exc_value.__notes__ == ["This happened while an object of Handle was closed."]


def test_all_objects_are_closed_when_python_ends():
    script = (
        "import jupyter_jaxcb as jaxcb\n"
        "class Handle: pass\n"
        "@jaxcb.host_object(close=lambda handle: print('closed', handle.name))\n"
        "def opened(name):\n"
        "    handle = Handle()\n"
        "    handle.name = name\n"
        "    return handle\n"
        "opened('a'), opened('b')\n"
        "used = opened('a')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert sorted(done.stdout.split("\n")) == ["", "closed a", "closed b"]
    assert done.stderr == ""
