"""Classes that have shrunk onto a single value of a numeric column, in words."""

import numpy as np

from sklearn_lrvb.mixtures.single_values import note_of_single_values, sample_of, single_values


def notes_of_columns(rows, posterior, columns):
    """Which numeric columns have made classes by single values, and what to do about it: tuple of sentences.

    Parameters
    ----------
    rows : Rows, the training rows
    posterior : ClassPosterior
    columns : TableColumns
    """
    deviations = np.full((posterior.n_components, len(columns.columns)), np.nan)
    for family, sums in zip(posterior.prior.families, posterior.parts, strict=True):
        if "sd" in family.estimates:
            deviations[:, family.places] = family.values(sums)[..., family.estimates.index("sd")]
    if np.isnan(deviations).all():
        return ()
    found = single_values(sample_of(rows), posterior, deviations)
    if not found:
        return ()
    name = columns.names[found[0].column]
    return (
        note_of_single_values(found, columns.names),
        f"Say what such columns are: columns={{{name!r}: 'categorical'}} for answers and codes, 'count' for "
        "numbers of things; or leave them out by 'ignore'.",
    )
