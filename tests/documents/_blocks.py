"""Extract the Python blocks of the documents."""

import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
# The blocks of these pages run one after the other, as one program.
SEQUENTIAL = (
    "extending.md",
    "guide/watch-values.md",
    "reference/facts.md",
    "reference/host-callback.md",
    "reference/index.md",
)


def python_blocks(text):
    """Return the Python blocks that the tests run."""
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def skipped_blocks(text):
    """Return the blocks that only have to compile, each with the text before it."""
    parts = re.split(r"^```python skip\n", text, flags=re.MULTILINE)
    codes = [part.partition("\n```")[0] for part in parts[1:]]
    return [(before[-300:], code) for before, code in zip(parts, codes, strict=False)]


def standalone_documents():
    """Return README and pages whose blocks are complete programs, by name."""
    docs = REPOSITORY / "docs"
    found = {"README.md": REPOSITORY / "README.md"}
    for path in sorted(docs.glob("**/*.md")):
        name = path.relative_to(docs).as_posix()
        if name not in SEQUENTIAL and name[0] != "_":
            found[name] = path
    return {name: path.read_text(encoding="utf-8") for name, path in found.items()}
