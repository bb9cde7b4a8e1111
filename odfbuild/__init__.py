"""odfbuild: a declarative, GitOps-style build tool for data."""

__all__ = ["__version__"]

__version__ = "0.1.0"
