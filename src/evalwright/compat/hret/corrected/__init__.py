"""Translates calls of HRET: its rows, methods and models as tasks, scorers and strategies of ours
(`scoring="corrected"`, the default).
"""
