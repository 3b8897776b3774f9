"""The landscape of influence at several overlaps."""

from itertools import product

from tables import table, text

_OVERLAPS = ("little", "moderate", "large")
_READ = ("its own", "in doubt", "the other's", "within 1 sd", "2 to 3 sd", "beyond 3 sd")  # places


def section(found):
    shown = table(
        [
            ("overlap", lambda row: row["overlap"]),
            ("means apart, the paper's as 1", text("distance")),
            ("points", lambda row: row["place"]),
            ("how many", text("rows", "{:,.0f}")),
            ("median", text("median", "{:.2f}")),
            ("median size", text("median_size", "{:.2f}")),
            ("largest size", text("largest_size", "{:.2f}")),
            ("reversed", text("share_reversed", "{:.0%}")),
        ],
        found,
    )
    return f"""## Landscape of influence

Influence of the first coordinate of a point on that of the upper right component's mean, times the rows of
that component: 1 is what each point of a component that stands alone has. "In doubt" are points with a
probability of 5 % to 95 % of being the component's; distances are from its mean in its own standard
deviations. {found[0]["n_samples"]:,.0f} rows. The simulation of moderate overlap is that of the paper's other
experiments; how far apart the means of its figure are it does not say.

{shown}

![Landscape of influence](paper_influence_landscape.png)
{_reading({row["problem"]: row for row in found}) if _complete(found) else ""}"""


def _complete(found):
    """Whether there is all that is read: an interrupted run leaves rows out."""
    wanted = {f"{overlap} overlap: {place}" for overlap, place in product(_OVERLAPS, _READ)}
    return found[0]["mode"] == "full" and wanted <= {row["problem"] for row in found}


def _reading(rows):
    """What the paper says, and what is seen."""

    def share(overlap, place, other):
        sizes = (rows[f"{overlap} overlap: {points}"]["median_size"] for points in (place, other))
        return f"{next(sizes) / next(sizes):.0%}"

    def reversed_in_doubt(overlap):
        return f"{rows[f'{overlap} overlap: in doubt']['share_reversed']:.0%}"

    in_doubt = rows["large overlap: in doubt"]
    doubtful = in_doubt["rows"] / in_doubt["n_samples"]
    return f"""
What the paper says, and what is seen, sizes being medians:

* "The component's mean is essentially determined by the points that are assigned to it": with little overlap
  the other's points have {share("little", "the other's", "its own")} of the influence of its own, on the
  paper's own simulation {share("moderate", "the other's", "its own")}.
* "Points on the border between the two components reverse the sign of their effect": of the points in doubt
  {reversed_in_doubt("little")} do with little overlap and {reversed_in_doubt("moderate")} with moderate
  overlap. With large overlap {reversed_in_doubt("large")} do, where {doubtful:.0%} of all points are in
  doubt.
* When components overlap even more, "data points that are distant from a component center have nearly as much
  influence as data points well within": points at 2 to 3 standard deviations have
  {share("large", "2 to 3 sd", "within 1 sd")} of the influence of those within one, points beyond three
  {share("large", "beyond 3 sd", "within 1 sd")}; with little overlap these have
  {share("little", "beyond 3 sd", "within 1 sd")}.
"""
