"""Shows the docstring of a class in two parts, so that its page opens with what most readers come for.

The first ``autoclass`` on a page has the signature, the introduction and the example. The second one, which
has the option ``no-index``, has the parameters and all that is left. `_templates/autosummary/class.rst` puts
the methods between them.
"""

import re
from itertools import pairwise


def sections(lines):
    """The parts of a numpydoc docstring: the introduction, and then a list of lines for every section."""
    underlines = [place for place, line in enumerate(lines) if re.fullmatch(r"---+", line)]
    starts = [0, *(place - 1 for place in underlines), len(lines)]
    return [lines[start:end] for start, end in pairwise(starts)]


def keep_own_part(app, what, name, obj, options, lines):
    """Keep those lines of a class's docstring that this directive shows."""
    if what != "class":
        return
    introduction, *others = sections(lines)
    examples = [section for section in others if section[0] == "Examples"]
    others = [section for section in others if section[0] != "Examples"]
    shown = others if options.no_index else [introduction, *examples]
    lines[:] = [line for section in shown for line in [*section, ""]]


def show_signature_once(app, what, name, obj, options, signature, returned):
    """Leave out the signature where the parameters follow, one by one."""
    return ("", None) if what == "class" and options.no_index else None


def setup(app):
    """Come between autodoc, which finds docstrings, and numpydoc, which reads them."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", keep_own_part, priority=400)  # numpydoc's own comes at 500.
    app.connect("autodoc-process-signature", show_signature_once, priority=600)
    return {"parallel_read_safe": True}
