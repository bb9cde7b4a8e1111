"""Sections of odfbuild.yaml that set something by patterns of dataset names."""
