"""Methods that the estimators of all mixtures have.

`fitted` is the state that they use, and `arguments` checks what users pass. `prediction_methods` and
`influence_methods` are the methods themselves, without what belongs to one kind of mixture.
"""
