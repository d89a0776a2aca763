"""Validates a judge against people: draws answers to label, reads the labels, corrects scores.

`verdicts` reads a run's verdicts as arrays, `drawing` draws labelling sets and keeps them
beside the run, `labels` reads the table that people fill in, `calibration` corrects one run or
the difference of two, `probes` look for the judge's faults, and `panels` compares several
judges with each other. Every number comes from `statistics`.
"""
