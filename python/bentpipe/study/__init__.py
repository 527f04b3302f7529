"""The catalogue of studies, and what their pages share: tables, figures, intervals, published values.

A study is a folder: its question, its campaigns, what was published, the code that makes its page, the page.
"""
