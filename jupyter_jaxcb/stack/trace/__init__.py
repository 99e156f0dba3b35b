"""Where a bind is made: the call site, whose code it is in, and who listens in this thread.

Read `_site` first.
"""

from ._block import Block as Block
from ._code_owner import CROSSINGS as CROSSINGS
from ._code_owner import EAGER as EAGER
from ._code_owner import JAX_FOLDER as JAX_FOLDER
from ._code_owner import WAITING as WAITING
from ._code_owner import is_cell as is_cell
from ._code_owner import is_machinery as is_machinery
from ._code_owner import is_ours as is_ours
from ._code_owner import is_own_module as is_own_module
from ._code_owner import is_recording as is_recording
from ._code_owner import is_user_code as is_user_code
from ._disabled import disabled as disabled
from ._disabled import enabled as enabled
from ._disabled import is_disabled as is_disabled
from ._disabled import left_out as left_out
from ._listener import ThreadRecorder as ThreadRecorder
from ._listener import any_lowered as any_lowered
from ._listener import expect_host_calls as expect_host_calls
from ._listener import has_thread_recorder as has_thread_recorder
from ._listener import listener as listener
from ._site import Found as Found
from ._site import Frames as Frames
from ._site import find_frames as find_frames
from ._site import function_of as function_of
from ._site import site_of_frames as site_of_frames
from ._threads import frames_of_threads as frames_of_threads
from ._threads import without_collecting as without_collecting
