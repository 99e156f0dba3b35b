collect_ignore = ["devices.py"]  # a script
