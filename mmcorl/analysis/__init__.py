"""Analysis: what a cohort is made of, and what a run did."""
