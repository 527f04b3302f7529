"""Bentpipe: the laboratory for QUIC over satellite links."""

__version__ = "0.2.0"
