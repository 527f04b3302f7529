"""The formats of Bentpipe's files, generated from the definitions in `schemas/` by `make schemas`."""
