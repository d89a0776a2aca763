"""Does it work here, with the real providers, the hub and the devices?

Checks that a person with keys or a GPU runs once.

`here` sends nothing. `providers` plans its requests first, so that what they cost at the most is
known before one is sent; `hub` fetches a tiny model and a tiny data set; `devices` compares each
device with the CPU.
"""
