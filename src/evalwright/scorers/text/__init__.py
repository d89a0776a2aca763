"""Text as the scorers read it: which part of a reply counts, what its marks mean, where its words
begin and end.
"""
