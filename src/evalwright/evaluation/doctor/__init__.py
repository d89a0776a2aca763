"""Checks whether Evalwright works here, with the real providers, the hub and the devices.

A user with keys or a GPU runs them once. `here` sends nothing. `providers` plans its requests
first, so that their maximum cost is known before one is sent; `hub` fetches a tiny model and a tiny
dataset; `devices` compares each device with the CPU.
"""
