"""The execution of trials: what runs next, how many at a time, on which testbed, and what ends a run early.

It decides nothing about results: it hands out jobs, and gives their answers to the run's folder.
"""
