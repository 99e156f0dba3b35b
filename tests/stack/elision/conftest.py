collect_ignore = ["programs/devices.py", "runs/cached.py"]  # programs of their own
