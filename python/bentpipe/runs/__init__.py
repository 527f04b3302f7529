"""Runs: their folders, the only place where these are read and written, with records and manifests."""
