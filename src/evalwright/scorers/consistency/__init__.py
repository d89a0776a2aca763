"""Is an answer supported by its source?

One or more judges decide: classifiers of text pairs, or models that write a verdict.
"""
