"""Tables of mixed columns: what each column is, and its values as numbers and back."""
