"""Declared tables: each one, and what is wrong with `tables` of odfbuild.yaml."""
