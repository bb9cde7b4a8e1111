"""Tests of `odfbuild.graph`."""
