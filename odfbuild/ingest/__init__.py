"""From a source to prepared files: fetch, prepare, probe."""
