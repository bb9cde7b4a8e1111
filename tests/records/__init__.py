"""Tests of odfbuild.records."""
