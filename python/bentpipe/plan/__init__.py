"""What is to be run: campaigns, scenarios, workloads, flows, treatments, and the trials that come of them.

It knows stacks as names with options, and nothing of how trials are executed or what came of them.
"""
