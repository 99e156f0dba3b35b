"""."""

from ._session import Session as Session
from ._stacks import stacks as stacks
