"""mmcorl: a cohort of different models teaches itself to reason, without labels, by peer votes."""

__version__ = "0.1.0"
