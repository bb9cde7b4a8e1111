"""Imported by a process that is to index keys behind each commit, also those of few records."""

from odfbuild.apply import ingest

ingest.WORTH_AN_INDEX = 1
