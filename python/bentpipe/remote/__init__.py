"""Real links: where their hosts are, connections to these, their clocks, and what is brought there.

Beside them a laboratory: a link of known properties between two SSH servers on this machine.
"""
