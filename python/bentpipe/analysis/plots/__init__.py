"""Figures of what was on the wire in a trial: series out of its packets, and drawings of them."""
