"""Imports what a run of the program imports, for the process that forks such runs."""

from tests.apply.killer import import_what_a_run_imports

import_what_a_run_imports()
