"""Is an answer supported by its source?

One or several judges say so: classifiers of pairs, or models that write a verdict.
"""
