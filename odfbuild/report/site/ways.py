"""Ways to read a dataset, ready to copy, at the block that the page shows. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odfbuild.inspect.pages import Page


def ways_in(page: Page) -> list[tuple[str, str]]:
    """Names of tools and what to type; nothing before there are records."""
    if page.state is None or not page.state.records:
        return []
    name, block = page.name, page.state.head
    dataset = f'Project()["{name}"].at("{block}")'
    head = "from odfbuild import Project\n\n"
    return [
        ("Python", f"{head}records = {dataset}\nprint(records.pin)\nrecords.head()"),
        ("DuckDB", f"{head}{dataset}.to_duckdb().limit(10).fetchall()"),
        ("polars", f"{head}{dataset}.to_polars()"),
        ("Spark", f"odfbuild sql --as-of {block} \\\n  'SELECT * FROM `{name}` LIMIT 10'"),
        ("Command line", f"odfbuild tail --as-of {block} {name}"),
    ]
