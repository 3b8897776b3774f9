"""The variational posterior, its prior, and the statistics that lead from one to the other."""
