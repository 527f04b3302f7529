"""The QUIC interop runner's `result.json`: runs as the runner writes them, and its results as runs.

Two programs write such files and draw them, the QUIC interop runner (github.com/quic-interop) and its fork
for satellites (github.com/sedrubal); the format is what their sources write and read. The fork adds to
measurements each value, `error_code`, `theoretical_max_value`, `repetitions` and `timeout`.
"""
