"""Linear response (Sections 3 to 5 of the paper): arrays in, arrays out, no model in sight."""
