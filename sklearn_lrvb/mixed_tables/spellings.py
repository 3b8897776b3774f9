"""Categories that may be one, or none: spellings of one answer, and words for a missing value."""

_WORDS_FOR_MISSING = frozenset({"", "?", "na", "n/a", "<na>", "nan", "null"})
_IN_ONE_WAY = {
    "pandas": ", as by X[{0!r}] = X[{0!r}].astype('string').str.strip().str.lower()",
    "polars": ", as by X.with_columns(pl.col({0!r}).str.strip_chars().str.to_lowercase())",
    "array": "",
}


def notes_of_spellings(columns, container):
    """Notes on categories that look alike, or like a missing value: list of sentences.

    Parameters
    ----------
    columns : tuple of Column
    container : "pandas", "polars" or "array", for which remedies are written
    """
    alike, missing = {}, {}
    for column in columns:
        of_word = {}
        for category in column.categories:
            if category in column.seen:
                of_word.setdefault(" ".join(str(category).split()).lower(), []).append(category)
        blanks = [category for word in _WORDS_FOR_MISSING & of_word.keys() for category in of_word.pop(word)]
        if blanks:
            missing[column.name] = sorted(blanks, key=column.categories.index)
        several = [group for group in of_word.values() if len(group) > 1]
        if several:
            alike[column.name] = [category for group in several for category in group]
    notes = []
    if alike:
        remedy = _IN_ONE_WAY[container].format(next(iter(alike)))
        notes.append(
            "Categories that differ in blanks, in upper and lower case, or in being text or number, count as "
            f"different: {_listed(alike)}. If they are one, write them in one way{remedy}."
        )
    if missing:
        notes.append(
            f"Categories that look like missing values count as categories: {_listed(missing)}. If they are "
            "missing, write None in place of them."
        )
    return notes


def _listed(found):
    """Categories by name of the column, the first five of the first five columns, for a message."""
    listed = [
        f"{', '.join(map(repr, categories[:5]))}{', ...' * (len(categories) > 5)} of column {name!r}"
        for name, categories in list(found.items())[:5]
    ]
    return "; ".join(listed) + "; ..." * (len(found) > 5)
