"""Save and load recordings: JSON, and a compact format for long logs.

`_save` selects the format by suffix; `_json` writes and reads the facts, `_binary` the rows.
`_decode` checks every value read from a file, and its size.
"""

from ._binary import read_binary as read_binary
from ._binary import write_binary as write_binary
from ._decode import RecordingFileError as RecordingFileError
from ._json import SCHEMA as SCHEMA
from ._json import fields as fields
from ._json import to_json as to_json
from ._save import FORMATS as FORMATS
from ._save import LIMIT_BYTES as LIMIT_BYTES
from ._save import check_path as check_path
from ._save import read as read
from ._save import save as save
