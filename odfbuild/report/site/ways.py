"""Ways to read a dataset, ready to copy, at the block that the page shows. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odfbuild.inspect.pages import Page


def ways_in(page: Page) -> list[tuple[str, str]]:
    """Names of tools and what to type; nothing before there are records."""
    if page.state is None or not page.state.records:
        return []
    name, head = page.name, page.state.head
    quoted = name.replace("'", "")
    return [
        ("CLI", f"odfbuild tail {quoted}"),
        (
            "Spark",
            f"odfbuild sql --as-of {page.state.system_time} \\\n"
            f"  'SELECT * FROM `{quoted}` LIMIT 10'",
        ),
        (
            "Python",
            "from odfbuild import Project\n\n"
            f'records = Project().records("{quoted}")  # block {head}',
        ),
    ]
