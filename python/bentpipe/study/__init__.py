"""The parts that studies share: tables, figures, intervals, and what they are computed from; and the
catalogue of studies.

A study is a folder: its question, its campaigns, what was published, the code that makes its page, the page.
"""
