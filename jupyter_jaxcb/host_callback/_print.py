"""The host function of id_print, and the layout of its output."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

WIDTH = 80  # columns
_lock = threading.Lock()  # keeps the two writes of one print together


class Printer:
    """Prints a line of keyword arguments, if there are any, and the value."""

    __name__ = "id_print"

    def __init__(self, output_stream: Any, threshold: int | None, words: Mapping[str, Any]) -> None:
        self._stream = output_stream
        self._threshold = threshold
        self._words = words
        # Saved now, because numpy keeps print options per thread and XLA may call from any thread.
        self._options: dict[str, Any] = dict(np.get_printoptions())

    def __call__(self, arg: Any, transforms: tuple[Any, ...], **device: Any) -> None:
        if "transforms" in self._words:
            raise TypeError(
                "id_print uses the name 'transforms' itself, for vmap and transpose. Give your "
                "keyword argument another name."
            )
        words = {**self._words, **device}
        if transforms:
            named = [(name, params) if params else name for name, params in transforms]
            words["transforms"] = named
        header = " ".join(f"{key}: {words[key]}" for key in sorted(words))
        with np.printoptions(**self._options):
            value = layout(arg, self._threshold)
        with _lock:
            for text in (header, value) if header else (value,):
                if self._stream is None:
                    print(text)
                else:
                    self._stream.write(f"{text}\n")


def layout(value: Any, threshold: int | None = None, width: int = WIDTH) -> str:
    """Format `value`: nested containers on one line if they fit, else one element per line.

    Args:
        value: a pytree.
        threshold: of `numpy.array2string`.
        width: the number of columns.

    >>> from jupyter_jaxcb.host_callback._print import layout
    >>> layout({"b": (1, 2), "a": []})
    '{ a=[  ] b=( 1 2 ) }'
    """
    text = _Text(width)
    text.add(value, 0, threshold)
    return "".join(text.pieces)


class _Text:
    """A text that is built in pieces; a multi-line array counts as one long line, as in JAX."""

    def __init__(self, width: int) -> None:
        self.pieces: list[str] = []
        self._width = width
        self._column = 0

    def add(self, value: Any, indent: int, threshold: int | None, prefix: str = "") -> None:
        flat = _flat(value, threshold)
        self._put(prefix)
        parts = _parts(value)
        if parts is None or self._column + len(flat) <= self._width:
            self._put(flat)
            return
        opening, closing, items = parts
        self._put(f"{opening} ")
        for place, (name, item) in enumerate(items):
            if place:
                self.pieces.append("\n" + " " * (indent + 2))
                self._column = indent + 2
            self.add(item, indent + 2, threshold, name)
        self._put(f" {closing}")

    def _put(self, text: str) -> None:
        self.pieces.append(text)
        self._column += len(text)


def _flat(value: Any, threshold: int | None) -> str:
    parts = _parts(value)
    if parts is not None:
        opening, closing, items = parts
        inner = " ".join(name + _flat(item, threshold) for name, item in items)
        return f"{opening} {inner} {closing}"
    if isinstance(value, np.ndarray):
        return np.array2string(value, threshold=threshold)
    return str(value)


def _parts(value: Any) -> tuple[str, str, Iterator[tuple[str, Any]]] | None:
    """Return the brackets of a container and its elements with their prefixes; None for a leaf."""
    if isinstance(value, tuple):
        return "(", ")", (("", item) for item in value)
    if isinstance(value, list):
        return "[", "]", (("", item) for item in value)
    if isinstance(value, dict):
        return "{", "}", ((f"{key}=", value[key]) for key in sorted(value))
    return None
