"""Plans: campaigns, scenarios, workloads, flows, treatments, and the trials that they expand into. It knows
stacks as names with options, and nothing of how trials are executed or of their results.

It knows stacks as names with options, and nothing of how trials are executed or what came of them.
"""
