"""Objectives: what a stack is to reach, and whether it does, now and since yesterday (`bentpipe check`)."""
