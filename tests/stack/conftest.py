collect_ignore = ["cached.py", "placed.py", "shards.py"]  # programs of their own
