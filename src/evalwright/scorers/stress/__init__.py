"""Scores whether a reply notices that its question rests on something false or unknowable."""
