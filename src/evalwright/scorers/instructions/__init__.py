"""Scores whether an answer follows instructions that the text alone can show, as in IFEval."""
