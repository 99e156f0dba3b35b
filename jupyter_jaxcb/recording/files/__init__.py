"""."""

from ._binary import read_binary as read_binary
from ._binary import write_binary as write_binary
from ._decode import RecordingFileError as RecordingFileError
from ._json import SCHEMA as SCHEMA
from ._save import FORMATS as FORMATS
from ._save import check_path as check_path
