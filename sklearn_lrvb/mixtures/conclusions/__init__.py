"""What one concludes from a fit of a mixture of any kind, and how sure that is.

`number_of_clusters` is how many clusters there are (`model_choice`, `number_evidence`), `partitions` which
rows belong together (`partition_search`), and `deciding_rows` without which rows a conclusion changes
(`conclusions`). `methods` are the methods of an estimator.
"""
