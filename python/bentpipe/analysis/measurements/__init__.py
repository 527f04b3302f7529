"""Scenarios from measurements: what people logged of a path, as rates, delays and losses over time.

A module for each format reads a file into a `Reading`; `reading` finds out which format a file has, and
`composing` makes a scenario of what was read.
"""
