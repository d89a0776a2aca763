"""How requests are sent: the durable store, batching for local models, pacing for remote ones.

`opening.open_store(home)` opens the store of all runs; `engine.Engine(store)` sends requests; its
`client({"target": model})` is the `ask` that strategies and scorers get.
"""
