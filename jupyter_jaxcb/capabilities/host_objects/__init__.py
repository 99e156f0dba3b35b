"""Objects that stay on the host: computed once, found again by the content of their arguments.

`_host_object` has the decorator. `_key` turns arguments into a key, `_store` keeps the objects that
were used last, `_size` measures them, and `_closing` closes those that are not kept any longer.
"""

from ._host_object import HostObject, HostObjectInfo, host_object
