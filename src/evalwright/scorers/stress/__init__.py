"""Questions that rest on something false, that does not exist or that nobody can know: does the
reply say so?
"""
