"""The sentences about a profile, each with its figure."""

import dataclasses
import re

import numpy as np
import pytest

from jupyter_jaxcb.recording import Unknown
from tests.interface import (
    ROW,
    Compilation,
    Frame,
    Lane,
    LoweredSite,
    Note,
    NoteKind,
    Outcome,
    Part,
    PartKind,
    Profile,
    Program,
    Recording,
    Site,
    Status,
    to_message,
    to_text,
)

from ._several import f32, level

SECOND = 10**9
PLACE = Frame("", "model.py", 3)


def part(kind, name, share, times=0, lowered=-1, place=PLACE, busy=None):
    """Return a part of a second, with this share of it; it was busy for another one."""
    wall, busy_ns = (round(SECOND * one) for one in (share, share if busy is None else busy))
    return Part(PartKind(kind), name, place, wall, busy_ns, times, lowered)


def host(name, share, times=900, **more):
    return part("host", name, share, times, 0, **more)


def recording(*parts, flavor="pure", results=1, compilations=()):
    """A recording with one site of three calls, and a profile of these parts, one second long."""
    rest = SECOND - sum(one.wall_ns for one in parts)
    parts = (*parts, part("idle", "", rest / SECOND, place=None)) if rest else parts
    site = Site(flavor, "f", "model.py", 3, 0, cell=False)
    lowered = LoweredSite(site, Program("jit_step", "cpu"), 0, (f32(),), (f32(),) * results)
    calls = np.zeros(3, ROW)
    calls["crossing"] = range(3)
    profile = Profile(0, SECOND, parts, (Lane("", ()),), tuple(compilations), 100, 300, 10**6)
    return Recording(lowered=(lowered,), calls=calls, threads=("MainThread",), profile=profile)


def said(*args, **options):
    """The text of a profile after its table."""
    lines = to_text(recording(*args, **options)).split("\n\n")[0].splitlines()
    return "\n".join(line for line in lines if not line.startswith(" ") and line[0].isalpha())


def compiled(*arguments, function=1, name="jit_f", code=1, ms=10):
    avals = tuple(map(f32, arguments))
    weak = (False,) * len(avals)
    return Compilation(Program(name, ""), function, avals, 10**6, ms * 10**6, code=code, weak=weak)


SLOW = part("compilation", "f", 0.5, 2)
CROSSINGS = part("crossing", "f", 0.5, 10_000, 0)
LOG, WAITING = host("log", 0.25, 10), part("waiting", "log", 0.5, 0, 0)
DISPATCH = [part("dispatch", "add", 0.5, 5000), part("dispatch", "other", 0.1, 8000),
            part("dispatch", "np.asarray(jax.Array)", 0.1, 9000),
            part("dispatch", "shard_args", 0.1, 9000)]  # fmt: skip
NUMBER = compiled(3, ms=50)._replace(arguments=(f32(),), names=("params['w']",))
ANEW = "each time for a new function object: define and jit"
SEVERAL = {
    "compilations": [compiled(n, name=f"jit_f{f}", code=f, ms=ms)
                     for f, ms in enumerate([70, 40, 20, 60, 50], 1) for n in (3, 4)]
}  # fmt: skip
UNNEEDED = {"results": 0}


def of(*compilations):
    return {"compilations": compilations}


@pytest.mark.parametrize(
    ("parts", "options", "has", "lacks"),
    [
        ([host("f", 0.8)], {}, ["f (model.py:3) took 80 % of 1 s: 900 calls of 889 µs."], ""),
        ([host("f", 0.05)], {}, [], "f (model.py:3) took"),
        ([CROSSINGS], {},
         ["Crossings of f (model.py:3) took 50 % of 1 s: 10,000 of 50 µs",
          "compile='numba' takes 100 ns for each, which saves up to 499 ms."], ""),
        ([CROSSINGS], {"flavor": "jax pure"},
         ["jaxcb.pure_callback takes about 3 µs for each, which saves up to 470 ms."], ""),
        ([CROSSINGS], {"flavor": "jax debug", **UNNEEDED},
         ["jaxcb.debug_callback takes about 3 µs for each, which saves up to 470 ms."], ""),
        ([CROSSINGS], {"flavor": "debug"}, [], "saves"),
        # The program need not wait for a result that nobody needs, if it does something meanwhile.
        ([LOG], {"flavor": "debug", **UNNEEDED},
         ["waited 250 ms for log (model.py:3), whose result it does not need. With queued",
          "it goes on meanwhile, which saves up to 250 ms."], ""),
        ([LOG], {"flavor": "jax debug", **UNNEEDED},
         ["With jaxcb.debug_callback(..., queued=True) it"], ""),
        ([LOG], {}, [], "queued=True"),
        ([LOG], {"flavor": "io"}, [], "queued=True"),
        ([host("log", 0.8)], {"flavor": "debug", **UNNEEDED},
         ["waited 800 ms", "saves up to 200 ms."], ""),
        ([host("log", 0.98)], {"flavor": "debug", **UNNEEDED}, [], "queued=True"),
        ([WAITING, part("queued", "log", 0.25, 10, 0)], {},
         ["The program waited 500 ms for room in the queue of log (model.py:3). More room",
          "with jaxcb.set_queue_limit, saves up to 500 ms."], ""),
        ([WAITING, part("queued", "log", 0.25, 10, 0, busy=0.9)], {},
         ["took 900 ms, one after the other, so more room would not help."], "set_queue_limit"),
        (DISPATCH, {},
         ["Dispatch took 70 % of 1 s: JAX started 13,000 programs, add 5,000 times.",
          "With one jax.jit around them it starts one, which saves up to 700 ms."], ""),
        ([SLOW], of(compiled(3, ms=50), compiled(4, ms=50)),
         ["Compilation took 50 % of 1 s.\n",
          "jit_f was compiled 2 times (102 ms), for (float32[3]), (float32[4]): argu"], ""),
        ([SLOW], of(compiled(3, ms=50), compiled(3, 3, ms=50)),
         ["for (float32[3]), (float32[3], float32[3])."], "padded"),
        ([SLOW], of(*(compiled(3, function=n, ms=50) for n in (1, 2))), [ANEW], ""),
        ([SLOW], of(*(compiled(n, function=n, ms=50) for n in (3, 4))), [ANEW], "padded"),
        ([SLOW], of(NUMBER._replace(weak=(True,)), NUMBER),
         ["because params['w'] was weakly typed (as Python numbers are) the first time but not the "
          "second: pass jnp.asarray(params['w'], jnp.float32) or np.float32(params['w'])"], ""),
        ([SLOW], of(compiled(3, ms=100)), [], "was compiled"),
        ([SLOW], SEVERAL, ["jit_f1 was", "jit_f4 was", "jit_f5 was"], "jit_f2"),
    ],
)  # fmt: skip
def test_profile_says_what_took_long_and_what_saves_how_much(parts, options, has, lacks):
    text = said(*parts, **options)
    places = [text.find(words) for words in has]
    assert -1 not in places and places == sorted(places)
    assert not lacks or lacks not in text


@pytest.mark.parametrize("why", Unknown)
def test_why_the_profiler_was_off_is_said(why):
    text = said(part("unknown", why, 0.25, place=None))
    assert re.search("was off for 250 ms, and what XLA did then is not known: [^.]+[.]", text)


def looped(flavor="pure", method="sequential", made=100, notes=()):
    """A profile of 900 calls, those of the elements of a vmap of 100: `made` in each crossing."""
    one = recording(host("f", 0.9), flavor=flavor)
    (plain,) = one.lowered
    batched = dataclasses.replace(plain, levels=(level(100, method, (True,)),))
    outcome = Outcome(plain.site, plain.program, Status.KEPT, notes=tuple(map(Note, notes)))
    rows = np.zeros(900, ROW)
    rows["lowered"], rows["end_ns"] = 1, SECOND // 1000
    rows["crossing"] = np.arange(900) // made
    one = dataclasses.replace(one, lowered=(plain, batched), calls=rows, outcomes=(outcome,))
    return to_text(one).split("\n\n")[0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "900 calls of 1 ms. vmap makes one for each batch element."),
        ({}, "vmap_method='expand_dims' makes 9 instead; if not, executor= makes"),
        ({"flavor": "io"}, "makes 9 instead; if not, executor= makes"),
        ({"flavor": "debug"}, "'expand_dims' without ordered=True makes 9 instead."),
        ({"flavor": "jax pure", "made": 1}, "'expand_dims' makes 9 instead."),
        ({"flavor": "jax io"}, ""),
        ({"method": "broadcast_all"}, ""),
    ],
)
def test_batch_elements_that_are_called_one_by_one_are_counted_in_calls(options, words):
    text = looped(**options)
    assert words in text
    assert ("makes 9 instead" in text) == bool(words)


@pytest.mark.parametrize("flavor", ["pure", "debug", "buffer", "jax pure"])
def test_calls_of_batch_elements_that_do_not_need_them_are_advised_to_be_masked(flavor):
    for kind, words in (
        (NoteKind.FINISHED_ELEMENTS_RUN, "have finished the loop; leave these out with"),
        (NoteKind.ALL_BRANCHES_RUN, "do not take its branch; leave these out with"),
    ):
        text = looped(flavor, notes=[kind])
        assert f"It may also be called for batch elements that {words}" in text
    assert ".where(" not in looped(flavor)


@pytest.mark.parametrize(("flavor", "options"), [("debug", ["queued=True"]), ("jax debug", [])])
def test_the_site_of_a_registered_callback_proposes_to_queue_it(flavor, options):
    """With the sentence that the profile has, so that a front end finds one by the other."""
    _, measured, _ = to_message(recording(LOG, flavor=flavor, results=0))
    (site,) = measured["sites"]
    assert [option for option, *_ in site["proposals"]] == options
    assert {words for _, words, _ in site["proposals"]} <= set(measured["profile"]["advice"])


@pytest.mark.kept
def test_compilation_is_said_to_be_saved_only_by_the_same_functions_in_the_same_process():
    """A script compiles again each time that it runs, and so does a loop that makes functions."""
    text = said(SLOW, compilations=[compiled(3), compiled(3, name="jit_g", code=2)])
    assert (
        "Compilation took 50 % of 1 s. Later calls of the same jitted functions in this process, "
        "with arguments of the same shapes and types, save it."
    ) in text
    anew = [compiled(3, function=n, ms=50) for n in range(10)]
    for compilations in (anew, [*anew, compiled(3, code=2)], [compiled(3), compiled(4)]):
        text = said(SLOW, compilations=compilations)
        assert "Compilation took 50 % of 1 s." in text
        assert "save" not in text


def test_bar_headline_and_cost_are_in_the_text():
    text = to_text(recording(host("f", 0.5, 3)))
    assert text.startswith("1 s: 50 % host functions, 50 % idle\n" + "█" * 36 + "·" * 36 + "\n")
    assert "Profiling: 100 events took about 30 µs of this time (<0.1 %), and 1 ms to read." in text
