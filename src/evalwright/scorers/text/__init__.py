"""Text as the scorers read it: its words, numbers, dates and formulas, in any language.

Nothing here knows about replies or targets; `scorers/answers` does.
"""
