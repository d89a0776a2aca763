"""Text as the scorers read it: its marks, words, numbers, dates and formulas, in any language.

Nothing here knows of replies or targets; `scorers/answers` does.
"""
