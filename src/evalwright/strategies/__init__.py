"""How an answer is formed: one file per strategy, each plain `async` code over `ask`, with no
batching or retrying in it.
"""
