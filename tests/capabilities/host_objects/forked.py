"""A process that forks while another thread makes a host object; run by `test_forked.py`."""

import os
import threading

import jupyter_jaxcb as jaxcb

began, end = threading.Event(), threading.Event()


class Handle:
    def __init__(self, name):
        self.name = name


@jaxcb.host_object(max_objects=2, close=lambda handle: print("closed", handle.name, flush=True))
def opened(name):
    if name == "slow" and os.getpid() == parent:
        began.set()
        end.wait()
    return Handle(f"{name} of the {'parent' if os.getpid() == parent else 'child'}")


parent = os.getpid()
opened("kept")
thread = threading.Thread(target=opened, args=("slow",))
thread.start()
began.wait()
child = os.fork()
if child == 0:
    print("child has", opened("slow").name, flush=True)
    print("child has", opened("kept").name, flush=True)
    opened("third")
    opened.clear()
    print("child ends", flush=True)
    os._exit(0)
_, status = os.waitpid(child, 0)
end.set()
thread.join()
print("parent has", opened("slow").name, "after status", status, flush=True)
opened.clear()
