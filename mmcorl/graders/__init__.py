"""Graders: from text to answers, and which answers are the same."""

from mmcorl.graders.answers import Answer
from mmcorl.graders.conventions import Convention, convention
from mmcorl.graders.extract import Extraction
from mmcorl.graders.grader import Grader

__all__ = ["Answer", "Convention", "Extraction", "Grader", "convention"]
