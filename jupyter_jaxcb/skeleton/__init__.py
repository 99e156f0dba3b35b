"""A walking skeleton: one host call through the forms that the rooms of this package grow into.

Nothing here is public, and nothing else imports it. Read it top to bottom, in this order:

1. `_register`: a decorator makes a callback.
2. `_bind`: a call becomes an equation, and the equation a custom call. Flavors are rows.
3. `_dispatch`: XLA calls the host function.
4. `_elision`: how many calls a program asks for, and how many the compiled program makes.
5. `_recording`: the rows, the site records, and the file.
6. `_view`: the one JSON, with finished sentences, and what prints it.

The fields that these rooms hand to each other are in docs/architecture.md, "The contract".
"""

from ._dispatch import host_error
from ._recording import load
from ._register import debug, io, pure, record
from ._view import text, typescript, view
