"""`SiteSummary`: what all reports know and say about a call site.

Facts are fields, words are properties: text, HTML, Markdown and the JSON of the front end (whose
`SiteView` has the properties of the same names) print these.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

from ...recording import EXPECTED, SampleValues, Site, Status
from . import _queue
from ._batch import NO_LOOP, Loop
from ._not_finite import NO_NOT_FINITE, NotFiniteCalls
from ._phrases import DATA_DECIDE, SOME_OF, WORDS
from ._reasons import Cause, advice_words, impure_advice, library_advice, reason_words
from ._status import FEWER
from ._variant import Shapes, VariantView, drawn, one_shape, variant_views
from ._words import call_words, sample_words, time_words

# A vmap that loops over batch elements is slow if its host functions take at least this time.
_SLOW_NS = 1_000_000
_COSTLY_NS, _COSTLY = 100_000_000, 1 / 3  # calls that took so long, and so much of the time


@dataclasses.dataclass(frozen=True)
class SiteSummary:
    """The summary of one call site."""

    site: Site
    where: str  # from `Recording.where`, with column and callers where it is ambiguous
    name: str  # distinguishes it from other sites at the same column; empty if there are none
    status: Status
    calls: int  # host calls
    crossings: int
    expected: int | None  # host calls of the recorded runs, as compiled; None: unknown
    written: int | None  # host calls of the recorded runs, as the program text says
    elided: int  # number of elided outcomes
    shapes: tuple[Shapes, ...]  # `variants` has the words
    causes: tuple[Cause, ...]  # of its status; empty when its calls are simply kept
    errors: tuple[str, ...]
    interrupted: bool  # the user ended one of its calls: Ctrl-C, the stop button
    host_ns: int  # in the host function, summed over calls
    programs: tuple[str, ...]  # names of the programs that hold it
    around: tuple[str, ...]  # loops, branches and calls around it, outermost first
    stack: tuple[str, ...]  # also transformations, as JAX names them
    notes: tuple[str, ...]
    not_finite: int  # calls that returned NaN or infinity for finite arguments
    sample_values: tuple[tuple[SampleValues, int | None], ...]  # of the first calls, with shard
    ahead: bool  # nothing ran; expected and written are for one run
    not_finite_calls: NotFiniteCalls = NO_NOT_FINITE  # also for other arguments
    loop: Loop = NO_LOOP  # the calls that vmap_method='expand_dims' would make fewer
    wall_ns: int = 0  # of crossings whose calls ran in workers of an executor; 0: not all did
    library: str = ""  # makes the calls with a function of its own; empty for the user's
    impure: bool = False  # a pure callback whose code has side effects
    hints: tuple[str, ...] = ()  # of its notes and advice, those that a closed host trace tells
    share: float = 0.0  # of the time of the recorded code, in its calls; 0: unknown
    dropped: int = 0  # calls that a full queue has dropped

    @property
    def looped(self) -> int:
        """The calls for single batch elements that fewer calls would replace."""
        return self.loop.calls

    @functools.cached_property
    def consequence(self) -> str:
        """What matters most: ``raised``, ``stopped``, ``not_finite``, ``dropped``, or its status.

        ``not_needed`` in place of the status if its calls are not asked for, ``impure_hoisted`` or
        ``impure_deduplicated`` if calls of a function with side effects are missing.
        """
        if self.errors:
            return "raised"
        if self.interrupted:
            return "stopped"
        if self.not_finite:
            return "not_finite"
        if self.dropped:
            return "dropped"
        needless = any(cause.reason in EXPECTED for cause in self.causes)
        if needless:
            return "not_needed"
        return f"impure_{self.status}" if self.impure and self.status in FEWER else str(self.status)

    @functools.cached_property
    def reason(self) -> str:
        """Why it has its status; empty when its calls are simply kept."""
        return reason_words(self.causes)

    @functools.cached_property
    def advice(self) -> str:
        """What to do about it; empty when its calls are simply kept."""
        if self.consequence.startswith("impure"):
            return impure_advice(self.site.flavor)
        if self.library:
            return library_advice(self.causes, self.library)
        return advice_words(self.causes)

    @property
    def cost(self) -> str:
        """``82 %``: the share of the time of its calls, if they took much of it."""
        return f"{100 * self.share:.0f} %" if is_costly([self]) else ""

    @property
    def why(self) -> str:
        """Reason and advice; empty when its calls are simply kept."""
        return "; ".join(filter(None, (self.reason, self.advice)))

    @property
    def status_words(self) -> str:
        """``raised``, ``stopped by you in call 80``, ...; empty for kept calls."""
        word = WORDS[self.consequence]
        if self.consequence == "stopped":
            return f"{word} in call {self.calls:,}"
        if self.consequence == "dropped":
            every = call_words(self.calls + self.dropped)
            return f"{self.dropped:,} of {every} {word} (the queue was full)"
        return not_finite_words([self]) if self.consequence == "not_finite" else word

    @property
    def word(self) -> str:
        """`status_words`; empty if they are those of every site with this consequence."""
        words = self.status_words
        return "" if words == WORDS[self.consequence] else words

    @property
    def count(self) -> str:
        """``3 calls``, ``1 of 5 calls``: the calls of a site, or of one run if nothing ran."""
        if not self.ahead:
            return call_words(self.calls)
        if self.expected is None:
            return DATA_DECIDE
        if self.written in (None, self.expected):
            return call_words(self.expected)
        return SOME_OF.format(some=f"{self.expected:,}", calls=call_words(self.written))

    @property
    def time(self) -> str:
        """The time in the host function; empty if it was not called."""
        return time_words(self.host_ns) if self.calls else ""

    @functools.cached_property
    def variants(self) -> tuple[VariantView, ...]:
        """What is said about each of `shapes`."""
        return variant_views(self.shapes)

    @functools.cached_property
    def drawn(self) -> tuple[VariantView, ...]:
        """As `variants`, with what is drawn."""
        return tuple(map(drawn, self.variants, self.shapes))

    @property
    def arguments(self) -> str:
        """Names of the arguments, ``x, y``, to call the host function with."""
        if not self.shapes:
            return ""
        names, operands = self.shapes[0].operand_names, self.shapes[0].operands
        alike = len(names) == len(operands)
        return ", ".join(names if alike else (f"x{n}" for n in range(1, len(operands) + 1)))

    @property
    def samples(self) -> list[str]:
        """The arguments and result of each sampled call: ``element 2: 0.5, 1 → 0.479``."""
        return [sample_words(*one) for one in self.sample_values]

    def remarks(self, times: bool) -> list[str]:
        """Reason and advice, notes, and advice on a slow vmap, which needs `times`."""
        why = f"{self.elided} elided: {self.why}" if self.why and self.elided else self.why
        advice = (self.loop_advice, self.queue_advice) if times else ()
        return [text for text in (why, *self.notes, *advice) if text]

    @property
    def queue_advice(self) -> str:
        """Advice on calls that take much of the time and return nothing; empty if they do not."""
        silent = self.site.flavor in ("debug", "io") and not any(x.results for x in self.shapes)
        if not self.cost or self.library or not silent:
            return ""
        return _queue.ADVICE.format(time=time_words(self.host_ns))

    @property
    def loop_advice(self) -> str:
        """Advice on a vmap that loops; empty if it costs little or needs to loop."""
        calls, fewer, host_ns = self.loop
        if not fewer or host_ns < _SLOW_NS:
            return ""
        return (
            "vmap makes one call for each batch element; if the function can take a batch, "
            f"vmap_method='expand_dims' makes {call_words(fewer)} instead of {calls:,}; if each "
            "call takes milliseconds, executor= makes them in parallel"
        )

    def lines(self, times: bool) -> list[tuple[str, str, str, str]]:
        """Calls, shapes, vmaps and time: of the site, and of each variant if it has several."""
        variants = [
            (
                "" if self.ahead else view.count or call_words(view.calls),
                view.shapes,
                view.words,
                time_words(shapes.host_ns) if times and shapes.calls else "",
            )
            for view, shapes in zip(self.variants, self.shapes, strict=True)
        ]
        if len(variants) == 1:
            ((count, shapes, vmaps, time),) = variants
            return [(count or self.count, shapes, vmaps, time)]
        shapes = one_shape(view.shapes for view in self.variants)
        return [(self.count, shapes, "", self.time if times else ""), *variants]

    @property
    def place(self) -> str:
        """Name the site in a sentence."""
        return f"{self.where} {self.name}".rstrip()

    @property
    def source(self) -> str:
        """Return the source line, preceded by `name` if there is one."""
        line = self.site.source or self.site.function
        return f"{self.name}: {line}" if self.name and self.site.source else line


def not_finite_words(sites: Sequence[SiteSummary]) -> str:
    """Return ``NaN in 6 of 10 calls, first: call 5``, of call sites that have some."""
    word, calls = WORDS["not_finite"], sum(one.calls for one in sites)
    bad = sum(one.not_finite_calls.calls for one in sites)
    infinite = sum(one.not_finite_calls.infinite for one in sites)
    if infinite in (0, bad) and bad:
        word = "infinity" if infinite else "NaN"
    if bad == calls == 1:
        return word
    some = f"all {call_words(calls)}"
    if bad < calls:
        some = SOME_OF.format(some=f"{bad:,}", calls=call_words(calls))
        if any(one.not_finite_calls.at_least for one in sites):
            some = f"at least {some}"
        if len(sites) == 1 and (first := sites[0].not_finite_calls.first):
            some += f"{', first' if bad > 1 else ''}: call {first:,}"
    return f"{word} in {some}"


def is_costly(sites: Sequence[SiteSummary]) -> bool:
    """Return whether the calls of some sites took a third of the time of the recorded code."""
    host_ns, share = sum(one.host_ns for one in sites), sum(one.share for one in sites)
    return host_ns >= _COSTLY_NS and share >= _COSTLY
