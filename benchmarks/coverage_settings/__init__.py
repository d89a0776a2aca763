"""Settings whose intervals are known to be hard, a module for each family; `registry.py` says what
a setting is.
"""
