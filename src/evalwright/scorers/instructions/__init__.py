"""Instructions whose following can be seen in the text alone: the 25 kinds of IFEval, and the
scorer over them.
"""
