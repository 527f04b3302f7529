"""Paths by way of satellites in low orbits, from geometry: where satellites are, which of them serves a
terminal, and the scenario that comes of it. Lengths are in kilometres, angles in degrees unless a name says
otherwise, and positions are in axes that turn with the Earth.
"""
