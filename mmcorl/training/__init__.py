"""Training a cohort: the step, and everything around it."""
