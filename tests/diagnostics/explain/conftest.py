collect_ignore = ["devices.py"]  # a program of its own
