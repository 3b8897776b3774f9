"""Mixtures of normal components (Section 6 and Appendix C of the paper), and of Student's t."""
