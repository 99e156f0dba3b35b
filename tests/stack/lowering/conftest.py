collect_ignore = ["placed.py", "shards.py"]  # scripts that tests run in separate processes
