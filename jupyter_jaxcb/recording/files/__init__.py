"""Save and load recordings: JSON, and a compact format for long logs.

`_codec` makes JSON of facts, and checks what it reads; `_save` has the files.
"""

from ._codec import SCHEMA, RecordingFileError, chunks
from ._save import FORMATS, LIMIT_BYTES, check_folder, check_path, read, read_json, save
