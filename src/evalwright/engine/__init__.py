"""How requests are sent: a durable store, batching for local models, pacing for remote ones.

`opening.open_store(home)` opens the store that all runs share; `engine.Engine(store)` sends
requests; its `door({"target": model})` is the `ask` that strategies and scorers get.
"""
