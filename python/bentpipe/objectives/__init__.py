"""Objectives: what a stack is to reach, and whether it does, now and compared with an earlier run (`bentpipe
check`).
"""
