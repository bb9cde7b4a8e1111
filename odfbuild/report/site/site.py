"""The files of the catalogue: their paths, and how each one is made. Pure.

Every page can be read without scripts. What scripts add (search, the drawn graph, plots) reads the
files in `data/`, which are scripts themselves: a browser opens no other file from a page on disk.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from odfbuild.project.resources import template_text
from odfbuild.report.forms.html import render_page
from odfbuild.report.forms.words import lasting, size
from odfbuild.report.freshness import spelled
from odfbuild.report.outcome import result_word
from odfbuild.report.site.dataset import dataset_page
from odfbuild.report.site.paths import dataset_path, list_path, passport_path, run_path
from odfbuild.report.site.standing import Standing
from odfbuild.wording import count

if TYPE_CHECKING:
    from markupsafe import Markup

    from odfbuild.inspect.pages import Entry, Pages
    from odfbuild.odf.timestamp import Timestamp
    from odfbuild.survey.runs import PastRun

Make = Callable[[], bytes]

LISTED = 500
"""So many datasets stand in one list; more of them have several pages."""

_SHARD = 2_000
"""So many datasets are told of in one file of `data/`."""


@dataclass(frozen=True, kw_only=True)
class Site:
    """The catalogue of a project at a time; `libraries` are files of scripts by name.

    Without them, pages are made without scripts. `passports` are those of datasets, by name.
    """

    pages: Pages
    at: Timestamp
    libraries: Mapping[str, bytes]
    passports: Mapping[str, bytes] = field(default_factory=dict)

    def files(self) -> dict[str, Make]:
        """What makes each file, by its path in the folder."""
        made: dict[str, Make] = {"index.html": self._overview, "assets/site.css": self._style}
        for number in range(1, len(self._lists) + 1):
            made[list_path(number)] = partial(self._list, number)
        made |= {dataset_path(name): partial(self._dataset, name) for name in self.pages.names}
        made |= {passport_path(n): partial(bytes, data) for n, data in self.passports.items()}
        made |= {run_path(run.id): partial(self._run, run) for run in self.pages.runs}
        if self.libraries:
            made["graph.html"] = self._graph
            made["assets/site.js"] = partial(_resource, "site.js")
            made |= {f"assets/{n}": partial(bytes, text) for n, text in self.libraries.items()}
            for number in range(1, self._shards + 1):
                made[f"data/graph-{number}.js"] = partial(self._graph_data, number)
                made[f"data/search-{number}.js"] = partial(self._search_data, number)
        return made

    # --- What several pages tell ---

    @cached_property
    def _lists(self) -> list[tuple[str, ...]]:
        names = self.pages.names
        return [names[start : start + LISTED] for start in range(0, len(names), LISTED)]

    @property
    def _shards(self) -> int:
        return -(-len(self.pages.names) // _SHARD)

    @property
    def project(self) -> str:
        """What the project is called."""
        return self.pages.found.project.config.qualified_name

    @cached_property
    def standing(self) -> Standing:
        """How the datasets stand."""
        return Standing(self.pages.found, self.at)

    def _render(self, template: str, path: str, **values: Any) -> bytes:
        filters: dict[str, Callable[..., Any]] = {
            "count": count,
            "size": size,
            "age": spelled,
            "lasting": lasting,
            "link": _link,
            "run_path": run_path,
            "result_word": result_word,
        }
        text = render_page(
            f"site/{template}",
            filters,
            site=self,
            base="../" * path.count("/"),
            libraries=sorted(self.libraries),
            shards=self._shards,
            **values,
        )
        return text.encode()

    # --- The pages ---

    def _overview(self) -> bytes:
        counts: dict[str, int] = {}
        for name in self.pages.names:
            text = self.standing.status(name)
            counts[text] = counts.get(text, 0) + 1
        failed = [
            (name, entry.last)
            for name, entry in ((name, self.pages.entry(name)) for name in self._touched())
            if entry.last is not None and entry.last.is_failure
        ]
        stale = [name for name in self.pages.names if self.standing.age(name).status == "stale"]
        only = len(self._lists) == 1
        return self._render(
            "overview.html.j2",
            "index.html",
            counts=sorted(counts.items(), key=lambda each: -each[1]),
            failed=failed,
            stale=stale,
            entries=self._entries(self._lists[0]) if only else [],
            lists=[] if only else [(n, each[0], each[-1]) for n, each in enumerate(self._lists, 1)],
            runs=self.pages.runs[::-1],
        )

    def _touched(self) -> Iterator[str]:
        """Datasets that a run did something to."""
        named = {name for run in self.pages.runs for name in run.datasets}
        return (name for name in self.pages.names if name in named)

    def _entries(self, names: Sequence[str]) -> list[Entry]:
        return [self.pages.entry(name) for name in names]

    def _list(self, number: int) -> bytes:
        names = self._lists[number - 1]
        return self._render(
            "list.html.j2",
            list_path(number),
            entries=self._entries(names),
            number=number,
            last=len(self._lists),
        )

    def _dataset(self, name: str) -> bytes:
        path = dataset_path(name)
        return self._render(
            "dataset.html.j2",
            path,
            passport=passport_path(name) if name in self.passports else None,
            **dataset_page(self.standing, self.pages.of(name)),
        )

    def _run(self, run: PastRun) -> bytes:
        known = frozenset(self.pages.names)
        return self._render("run.html.j2", run_path(run.id), run=run, known=known)

    def _graph(self) -> bytes:
        return self._render("graph.html.j2", "graph.html")

    def _style(self) -> bytes:
        return _resource("site.css")

    # --- What scripts read ---

    def _shard(self, number: int) -> tuple[str, ...]:
        return self.pages.names[(number - 1) * _SHARD : number * _SHARD]

    @cached_property
    def _number(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.pages.names)}

    def _graph_data(self, number: int) -> bytes:
        rows = []
        for name in self._shard(number):
            entry = self.pages.entry(name)
            inputs = [self._number[each] for each in entry.inputs]
            rows.append(
                [
                    name,
                    self.standing.status(name),
                    self.standing.tone(name),
                    entry.template or "",
                    inputs,
                ]
            )
        return _script("graph", number, rows)

    def _search_data(self, number: int) -> bytes:
        rows = []
        for name in self._shard(number):
            entry = self.pages.entry(name)
            info = entry.info
            rows.append(
                [
                    name,
                    (info.description or "")[:500] if info else "",
                    " ".join(each.name for each in entry.columns[:200]),
                    " ".join(entry.owners),
                    " ".join(info.keywords or ()) if info else "",
                ]
            )
        return _script("search", number, rows)


def _link(name: str, base: str) -> Markup:
    """A link to the page of a dataset."""
    from markupsafe import Markup, escape

    text = escape(name)
    return Markup(f'<a href="{base}{dataset_path(text)}">{text}</a>')


def _resource(name: str) -> bytes:
    return template_text(f"report/site/{name}").encode()


def _script(kind: str, number: int, rows: Sequence[Any]) -> bytes:
    """Rows as a script that hands them over; parts have numbers, because they may come late."""
    text = json.dumps(rows, ensure_ascii=True, separators=(",", ":"))
    return f'odfbuildData("{kind}",{number},{text});\n'.encode()
