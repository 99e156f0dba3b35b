"""Objects that stay on the host: computed once, found again by the content of their arguments.

`_host_object` has the decorator, a bounded dict that closes what it drops. `_content` turns
arguments into a key of the dict, and measures objects.
"""

from ._host_object import HostObject, HostObjectInfo, host_object
