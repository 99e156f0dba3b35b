collect_ignore = ["battery.py", "poison.py", "waiting.py"]  # programs of their own
