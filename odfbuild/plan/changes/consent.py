"""`--allow` options: consent by name to dropping records."""

from __future__ import annotations

from odfbuild.values import Value


class Consent(Value):
    """Consent about the dataset `name`, and with `readers` about all that consumed it, too."""

    name: str
    readers: bool = False

    @classmethod
    def parse(cls, text: str) -> Consent:
        """Read `name`, or `name+` for its readers, too, however far."""
        return cls(text.removesuffix("+"), readers=text.endswith("+"))
