"""Tests of `odfbuild.plan.graph`."""
