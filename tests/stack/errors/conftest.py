collect_ignore = [
    "battery.py",
    "poison.py",
    "waiting.py",
]  # scripts that tests run in separate processes
