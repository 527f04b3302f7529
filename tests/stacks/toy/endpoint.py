"""A toy transport behind the endpoint contract, for tests: it is no QUIC, and keeps the contract."""

import sys

from toy import Toy

sys.exit(Toy().main())
