"""Render a recording with its profile, if it has one."""

from __future__ import annotations

from ...recording import Recording
from .. import text
from ._html import profile_to_html
from ._markdown import profile_to_markdown
from ._text import profile_to_text


def to_text(recording: Recording, *, times: bool = True, values: bool = False) -> str:
    """Return the profile, and then the summary line and the table of call sites.

    Args:
        recording: the recording to report.
        times: include the profile, and the time spent in host functions. Without it, equal programs
            give equal text.
        values: include the sample values.

    Returns:
        Text without a final newline; empty when there is nothing to show.
    """
    profile = profile_to_text(recording) if times else ""
    sites = text.to_text(recording, times=times, values=values)
    return "\n\n".join(filter(None, (profile, sites)))


def to_html(recording: Recording, *, times: bool = False, values: bool = False) -> str:
    """As `to_text`, but HTML without scripts: a one-line summary that expands to the table."""
    profile = profile_to_html(recording) if times else ""
    return profile + text.to_html(recording, times=times, values=values)


def to_markdown(recording: Recording) -> str:
    """As `to_text`, but Markdown, with times: the profile, and then the table of call sites."""
    parts = (profile_to_markdown(recording), text.to_markdown(recording))
    return "\n\n".join(filter(None, parts))
