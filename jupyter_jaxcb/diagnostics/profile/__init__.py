"""``profile()``: where the wall time of a block went.

`_profile` is the ``with`` block. While it runs, `_sampler` is a thread that samples the block's
thread and runs JAX's profiler (`_session`, read by `_events`), `_compilations` collects what
JAX compiles, and the recording its host calls. Then `_build` divides the time: `_parts` names what
happened, `_lanes` sorts it by thread, `_division` gives each instant one owner, and tells Python
from waiting in what is left.
"""

from ._profile import Profiled, profile
