"""Testbeds: where trials happen. Only they start endpoints, and know the contract that these keep."""
