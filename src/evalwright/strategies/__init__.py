"""How an answer is formed from responses: one file per kind of strategy.

Each strategy is plain `async` code over `ask`, without batching or retries.
"""
