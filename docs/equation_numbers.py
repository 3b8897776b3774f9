"""Numbers of equations that say which page of the theory they are on, such as (LR.5); an extension of Sphinx.

Sphinx numbers the equations of every page from one. A reference to another page's equation, or a citation in
a docstring, would not say which one is meant.
"""

from sphinx.domains.math import MathDomain

PAGE_LETTERS = {
    "theory/mean_field": "MF",
    "theory/linear_response": "LR",
    "theory/mixture": "M",
    "theory/mixture_covariance": "C",
    "theory/learned_prior": "LP",
    "theory/exact_posterior": "P",
    "theory/partitions": "PA",
    "theory/model_check": "MK",
    "theory/cluster_regression": "CR",
    "theory/missing_values": "V",
    "theory/outliers_and_heavy_tails": "O",
    "theory/latent_classes": "LC",
    "theory/fitting": "F",
    "theory/influence": "I",
    "theory/errata": "E",
}


class LetteredEquations(MathDomain):
    """The domain of equations, with the letters of the page in their numbers."""

    def note_equation(self, docname, labelid, location=None):
        """Number a labelled equation."""
        super().note_equation(docname, labelid, location)
        letters = PAGE_LETTERS.get(docname)
        if letters:
            number = self.equations[labelid][1]
            self.equations[labelid] = (docname, f"{letters}.{number}")


def setup(app):
    """Put this domain in the place of Sphinx's own."""
    app.add_domain(LetteredEquations, override=True)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
