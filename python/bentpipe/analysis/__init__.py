"""Analysis of records and traces: cells, comparisons with their statistics, traces and their plots.

It executes nothing, and knows runs by their records.
"""
