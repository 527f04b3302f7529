"""Pages that this machine serves to its own browser: the laboratory (`bentpipe explore`), and the report of a
run under way (`bentpipe run --watch`).
"""
