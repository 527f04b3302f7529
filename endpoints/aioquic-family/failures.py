"""Failures that end the program early."""


class Unsupported(Exception):
    """The role, test case, option or option value is not supported: exit code 127."""


class Failed(Exception):
    """Anything else, in words for people: exit code 1."""
