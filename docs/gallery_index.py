"""The gallery's first page: a card for every lesson, in the groups of the course; an extension of Sphinx.

`sphinx_gallery` makes the pages of the lessons and one grid of all of them. This page takes the grid's place.
"""

import ast
from pathlib import Path

from course import GROUPS

GRID = """
{heading}
{line}

.. toctree::
   :hidden:

{names}

.. grid:: 1 2 3 3
   :gutter: 3
{cards}
"""
CARD = """
   .. grid-item-card:: {question}
      :link: {name}
      :link-type: doc{image}
"""


def card(script):
    """The card of a lesson: its question, and its first figure if it has any."""
    question = ast.get_docstring(ast.parse(script.read_text("utf8"))).splitlines()[1]
    image = f"\n      :img-top: images/thumb/sphx_glr_{script.stem}_thumb.png"
    return CARD.format(
        question=question, name=script.stem, image=image if script.stem.startswith("plot_") else ""
    )


def grid(heading, scripts):
    """A section of the page: the lessons of one group."""
    return GRID.format(
        heading=heading,
        line="-" * len(heading),
        names="\n".join(f"   {script.stem}" for script in scripts),
        cards="".join(map(card, scripts)),
    )


def write_page(app):
    """Write the page over that of sphinx_gallery, which has just made it."""
    examples = Path(app.srcdir).parent / "examples"
    grids = [grid(heading, [examples / name for name in names]) for heading, names in GROUPS.items()]
    header = (examples / "GALLERY_HEADER.rst").read_text("utf8")
    (Path(app.srcdir) / "gallery" / "index.rst").write_text(header + "".join(grids), "utf8")


def setup(app):
    """Write the page once the lessons are there."""
    app.connect("builder-inited", write_page, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
