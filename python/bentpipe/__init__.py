"""Bentpipe: the laboratory for QUIC over satellite links."""

__version__ = "0.1.0"
