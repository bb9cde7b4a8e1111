"""Tests of `odfbuild.cli`."""
