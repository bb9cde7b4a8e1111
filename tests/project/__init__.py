"""Tests of `odfbuild.project`."""
