collect_ignore = ["programs/devices.py", "runs/cached.py"]  # scripts for separate processes
