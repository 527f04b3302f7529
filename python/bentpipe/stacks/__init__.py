"""Stacks: their folders, how they are built and installed, and which of them are installed here.

It knows nothing of campaigns, and starts programs only to build them or to ask them who they are.
"""
