from ._coverage import table


def pytest_terminal_summary(terminalreporter):
    lines = table()
    if lines:
        terminalreporter.section("random programs: callbacks under each transformation")
        for line in lines:
            terminalreporter.write_line(line)
