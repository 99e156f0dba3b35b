"""Read the tracebacks that IPython shows: what each frame says of its line."""

import re

_FRAME = re.compile(r"^(?=Cell In\[\d+\], line|File .*:\d+)", re.MULTILINE)
_HEADER = re.compile(r"Cell In\[(\d+)\], line (\d+)(?:, in ([^(]*)\()?")
_ARROW = re.compile(r"^-+> (\d+) ?(.*)$", re.MULTILINE)


def frames_of_cells(shown):
    """Return cell, line, function, and number and text of the arrow, for each frame in a cell.

    Args:
        shown: a traceback of IPython's mode "Context" or "Verbose", without colors.
    """
    found = []
    for part in _FRAME.split(shown)[1:]:
        header = _HEADER.match(part)
        if header is not None:
            cell, line, function = header.groups()
            arrows = [(int(number), text) for number, text in _ARROW.findall(part)]
            found.append((int(cell), int(line), function, arrows))
    return found


def wrong_frames(shown, sources):
    """Return the frames whose arrow is not at the line of the header, or shows other text.

    Args:
        shown: as for `frames_of_cells`.
        sources: the source of each cell, by its number.
    """
    return [
        frame
        for frame in frames_of_cells(shown)
        for cell, line, _, arrows in [frame]
        if arrows != [(line, sources[cell].splitlines()[line - 1])]
    ]
