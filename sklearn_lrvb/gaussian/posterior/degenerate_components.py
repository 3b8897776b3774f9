"""The messages of errors about components without a proper posterior (`DegenerateComponentError`)."""

# This is scikit-learn's message for a singular covariance. Ours go on with the component and its count.
ILL_DEFINED_COVARIANCE = (
    "Fitting the mixture model failed because some components have ill-defined empirical covariance "
    "(for instance caused by singleton or collapsed samples). Try to decrease the number of "
    "components, increase reg_covar, or scale the input data."
)


def empty_component_message(component, counts, prior):
    """Message for a component without rows that has no proper posterior, given all counts (K,)."""
    of_prior = "prior='flat'" if prior.flat else "its prior"
    return (
        f"Component {component} is empty (expected count {counts[component]:.3g} of "
        f"{counts.sum():.6g} points) and has no posterior under "
        f"{of_prior}. (a) Lower n_components (now "
        f"{len(counts)}). (b) Use prior='learned', where an empty component falls back to the "
        "prior. (c) Try another random_state, or raise n_init."
    )


def improper_precision_message(group, counts, prior):
    """Message for a precision group with too few rows for a proper posterior."""
    return (
        f"The precision of {_owner(group, counts, prior.structure)} has no proper posterior under "
        "prior='flat': there are too few points. (a) Lower n_components. (b) Use prior='learned'."
    )


def singular_covariance_message(group, counts, prior):
    """Message for a precision group whose covariance is singular to working precision."""
    remedy = " (b) Use prior='learned'." if prior.flat else ""
    return (
        f"{ILL_DEFINED_COVARIANCE} Here: the covariance of {_owner(group, counts, prior.structure)} is "
        f"singular to working precision, with reg_covar={prior.reg_covar:g}. (a) Drop constant or "
        f"duplicated columns, and repeated rows or rows of great weight.{remedy}"
    )


def _owner(group, counts, structure):
    """The components of a precision group in words, with their expected count."""
    owner = f"component {group}" if structure.has_own_precisions else "all components together"
    count = structure.layout.per_group(counts)[group]
    return f"{owner} (expected count {count:.3g}, {structure.n_dimensions} features)"
