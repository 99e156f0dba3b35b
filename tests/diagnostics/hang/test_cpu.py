"""A thread that computes is not taken for one that waits, even if others use the core."""

import pytest

PROGRAM = """
    import hashlib, json, os, subprocess, threading
    from jupyter_jaxcb.diagnostics.hang._cpu import cpu_use
    core = {min(os.sched_getaffinity(0))}
    os.sched_setaffinity(0, core)
    def computes():
        os.sched_setscheduler(threading.get_native_id(), os.SCHED_IDLE, os.sched_param(0))
        begun.set()
        hashlib.pbkdf2_hmac("sha1", b"", b"", 2**31 - 1)  # in C, for minutes, without the GIL
    def waits():
        begun.set()
        threading.Event().wait()
    begun = threading.Event()
    threading.Thread(target=KIND, daemon=True).start()
    begun.wait()
    other = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    try:
        print(json.dumps(cpu_use().process), flush=True)
    finally:
        other.kill()
        os._exit(0)
"""


@pytest.mark.parametrize("kind", ["computes", "waits"])
def test_thread_that_hardly_gets_the_core_still_computes(in_process, kind):
    assert in_process(PROGRAM.replace("KIND", kind)).value is (kind == "computes")
