"""Figures of the packets of a trial: series computed from them, and drawings of these."""
