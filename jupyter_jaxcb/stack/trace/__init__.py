"""Where a bind is made: the call site, whose code it is in, and which recorder this thread has.

Read `_site` first.
"""

from ._assigned import assigned_name
from ._block import Block, spent_in_blocks
from ._code_owner import (
    AWAITING_ROOM,
    CROSSINGS,
    EAGER,
    JAX_FOLDER,
    WAITING,
    is_cell,
    is_machinery,
    is_ours,
    is_own_module,
    is_recording,
    is_user_code,
    library_of,
)
from ._disabled import disabled, enabled, is_disabled, left_out
from ._listener import ThreadRecorder, any_lowered, expect_host_calls, has_thread_recorder, listener
from ._python import IS_TRIED
from ._site import Found, Frames, code_at, find_frames, site_of_frames
from ._threads import frames_of_threads, is_below, stack_of, without_collecting
