"""What studies share: tables, figures, intervals, and what they are made of; and which studies there are.

A study is a folder: its question, its campaigns, what was published, the code that makes its page, the page.
"""
