"""The rules of `odfbuild lint`, with codes and places.

`rules` says which rules there are, `queries`, `sources` and `files` hold them, `check` asks them
all. A rule answers from facts of the project; where it would have to guess, it is silent. Nothing
here reads a file or starts an engine.
"""
