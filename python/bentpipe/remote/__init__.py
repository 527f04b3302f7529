"""Real links: their hosts, the connections to these, their clocks, and the programs that are brought there.
Beside them a laboratory: a link of known properties between two SSH servers on this machine.

Beside them a laboratory: a link of known properties between two SSH servers on this machine.
"""
