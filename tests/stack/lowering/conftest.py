collect_ignore = ["placed.py", "shards.py"]  # programs of their own
