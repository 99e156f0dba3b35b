collect_ignore = ["shards.py"]  # a program of its own
