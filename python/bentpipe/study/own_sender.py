"""Bentpipe's own sender on pages of studies: one that recommends it says what others get beside it."""

from __future__ import annotations

OURS = "noq:cc=bentpipe"
# A test of the study `sender` holds that the page which is linked shows it.
BESIDE = f"""Beside `{OURS}` a flow of CUBIC gets little of a link whose queue is short: [the page on TCP and
QUIC](../fairness/fairness-tcp.md) has the shares."""
