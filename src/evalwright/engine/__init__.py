"""How requests are sent: a durable store, batching for local models, pacing for remote ones.

`opening.open_store(home)` opens the store that all runs share; `engine.Engine(store)` sends
requests; the client that its `door({"target": model})` returns is the `ask` that strategies and
scorers get.
"""
