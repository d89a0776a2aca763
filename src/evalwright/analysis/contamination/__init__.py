"""Where questions come from, and whether a model may have seen them: dates, rewrites, overlap with
a corpus, versions.
"""
