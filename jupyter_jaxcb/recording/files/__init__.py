"""Save and load recordings: JSON, and a compact format for long logs.

`_save` selects the format by suffix; `_json` writes and reads the facts, `_binary` the rows.
`_view_json` reads the host calls that a view of the front end saved.
`_decode` checks every value read from a file, and its size.
"""

from ._binary import read_binary, write_binary
from ._decode import RecordingFileError
from ._json import SCHEMA, fields, to_json
from ._save import FORMATS, LIMIT_BYTES, check_folder, check_path, read, save
