"""The Gaussian mixture (Section 6 and Appendix C of the paper)."""
