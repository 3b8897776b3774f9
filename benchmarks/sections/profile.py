"""Where the time of a pass goes."""

from experiments import profile
from tables import milliseconds, size, table, text


def section(found):
    shown = "\n".join(f"{_title(name)}:\n\n{_profile(name, found)}\n" for name in profile.PASSES)
    return f"""## Profile

Shares of the time of a pass on one thread, as a profiler sees it; the rest, which no part names, is the
Python around them and work of the size of the parameters.

{shown}"""


def _title(name):
    return name[0].upper() + name[1:]


def _profile(name, found):
    parts = [*profile.PASSES[name].parts, "rest"]
    return table(
        [
            ("problem", lambda row: row["problem"].split(":")[0]),
            ("N, P, K", size),
            ("ms", milliseconds("seconds")),
            *((part, text(part, "{:.0%}")) for part in parts),
        ],
        [row for row in found if row["pass"] == name],
    )
