"""``profile()``: where the wall time of a block went.

`_profile` is the ``with`` block. Four modules collect while it runs: `_session` the events of JAX's
profiler (read by `_events`), `_compilations` what JAX compiles, `_sampler` what the thread does
otherwise, and the recording its host calls. Then `_build` divides the time: `_parts` names what
happened, `_lanes` sorts it by thread, `_division` gives each instant one owner, and `_outside`
tells Python from waiting in what is left.
"""

from ._profile import Profiled as Profiled
from ._profile import profile as profile
