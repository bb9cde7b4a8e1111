"""Conversions of files: `odfbuild convert spreadsheet --sheet Prices < FILE`.

In a definition they are steps of `prepare`, in a process of their own with little memory.
"""
