"""How much one file of a project may ask for.

Whoever opens a pull request decides what these files hold, and a job plans them beside its secrets.
No project comes near these bounds by itself; each has an error that names the file.
"""

from __future__ import annotations

FILE_BYTES = 2 << 20
"""The size of a definition, of its query in a file, a template, unit tests or odfbuild.yaml, and of
a rendered instance."""

DEPTH = 60
"""The depth of values in values; what is deeper could not be read back from a block."""

VALUES = 200_000
"""Of a YAML text, keys included."""

ALIASED_VALUES = 100_000
"""The number of values of a YAML text, its aliases written out."""

INSTANCES = 100_000
"""The number of instances of one template."""

RENDERED_BYTES = 64 << 20
"""The size of all instances of one template."""

RENDER_SECONDS = 5
"""The processor time for all instances of one template."""

RENDER_MEMORY = 512 << 20
"""Bytes that rendering may take, beside what the program has before."""

QUERY_BYTES = 1 << 20
"""The size of the text of a query."""

QUERY_TOKENS = 50_000
"""Words and signs of a query."""

QUERY_STEPS = 200_000
"""Steps of the parser in a query, beside 20 for each word; common queries take one or two each."""

QUERY_DEPTH = 150
"""The depth of expressions in expressions; deeper ones are left to the engine."""

EXPANDED_TABLES = 1_000
"""The number of tables of a query, each use of a common table expression written out."""

QUERY_ERRORS = 50
"""The number of errors told of one query: whoever corrects these sees the others next."""

API_PAGE_BYTES = 256 << 20
"""The size of one response of an API, which is in memory as a whole."""

CONVERT_MEMORY = 4 << 30
"""Bytes of memory that converting one file may take, such as a spreadsheet."""
