"""Hostile projects: each function makes one of a small sound project, as a pull request could."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.apply.tiny import Tiny
from tests.cli.untrusted.test_git_called_safely import looks_like_a_repository

TOKEN = "tok-4711-of-the-job"
Make = Callable[[Tiny], None]


def define(tiny: Tiny, name: str, text: str) -> None:
    (tiny.root / "datasets" / name).write_text(text)


def derive(tiny: Tiny, query: str) -> None:
    """A derivative of any query, in JSON, so that no text needs to be indented."""
    define(
        tiny,
        "hostile.yaml",
        "kind: DatasetSnapshot\nversion: 1\ncontent:\n  name: hostile\n  kind: Derivative\n"
        "  metadata:\n    - kind: SetTransform\n      inputs: [{datasetRef: root, alias: source}]\n"
        f"      transform: {{kind: Sql, engine: spark, query: {json.dumps(query)}}}\n",
    )


def include(tiny: Tiny, link: str, target: str) -> None:
    """A template that puts all of another file into a value, which messages show."""
    (tiny.root / "templates").mkdir(exist_ok=True)
    (tiny.root / "templates" / link).symlink_to(target)
    define(
        tiny,
        f"{link}.yaml.j2",
        f"{{% set t %}}{{% include '{link}' %}}{{% endset %}}\n"
        "kind: {{ t|replace('\\n', ' ')|replace('\\t', ' ')|tojson }}\n",
    )


# --- Programs ---


def a_bare_repository_inside(tiny: Tiny) -> None:
    looks_like_a_repository(tiny.root, tiny.root.parent / "private" / "ran")


# --- Secrets ---


def includes_of_the_token_of_the_job(tiny: Tiny) -> None:
    header = f"AUTHORIZATION: basic {TOKEN}"
    settings = ["http.https://example.org/.extraheader", header]
    subprocess.run(["git", "config", *settings], cwd=tiny.root, check=True)
    include(tiny, "git", "../.git/config")


def includes_of_hidden_files(tiny: Tiny) -> None:
    (tiny.root / ".env").write_text(f"TOKEN={TOKEN}\n")
    (tiny.root / ".odfbuild-keys").mkdir(exist_ok=True)
    (tiny.root / ".odfbuild-keys" / "key").write_text(f"-----BEGIN PRIVATE KEY-----{TOKEN}\n")
    include(tiny, "env", "../.env")
    include(tiny, "key", "../.odfbuild-keys/key")
    define(tiny, "plain.yaml.j2", "kind: {% include '../.env' %}\n")


def definitions_that_are_links_to_hidden_files(tiny: Tiny) -> None:
    (tiny.root / ".env").write_text(f"kind: {TOKEN}\n")
    (tiny.root / ".hidden").mkdir()
    (tiny.root / ".hidden" / "x.yaml").write_text(f"kind: {TOKEN}\n")
    for name, target in (
        ("a.yaml", "../.env"),
        ("b.yaml.j2", "../.env"),
        ("c.test.yaml", "../.env"),
        ("folder", "../.hidden"),
    ):
        (tiny.root / "datasets" / name).symlink_to(target)


# --- Endless work ---


def blank_lines_before_a_template(tiny: Tiny) -> None:
    define(tiny, "t.yaml.j2", "\n" * 4_000 + "kind: DatasetSnapshot\n")


def many_openings_of_expressions(tiny: Tiny) -> None:
    define(tiny, "t.yaml.j2", "${{" * 30_000)


def a_text_of_gigabytes(tiny: Tiny) -> None:
    define(tiny, "a.yaml.j2", "kind: {{ 'x' * 3000000000 }}\n")
    define(tiny, "b.yaml.j2", "kind: {{ 'x'|center(2000000000) }}\n")
    define(tiny, "c.yaml.j2", "kind: {{ '%2000000000d'|format(1) }}\n")
    loop = "{% for a in range(99999) %}{{ 'x' * 100000 }}{% endfor %}\n"
    define(tiny, "d.yaml.j2", loop)


def nested_loops(tiny: Tiny) -> None:
    loops = "".join(f"{{% for {name} in range(99999) %}}" for name in "abc")
    define(tiny, "t.yaml.j2", loops + "{% endfor %}" * 3 + "\n")


def ten_thousand_million_instances(tiny: Tiny) -> None:
    keys = "".join(f"  k{n}: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]\n" for n in range(10))
    define(tiny, "t.yaml.j2", f"matrix:\n{keys}---\nkind: DatasetSnapshot\n")


def values_in_values(tiny: Tiny) -> None:
    define(tiny, "flow.yaml", "a: " + "[" * 200_000)
    define(tiny, "dashes.yaml", "- " * 100_000)
    define(tiny, "maps.yaml", "a: " + "{b: " * 50_000)
    define(tiny, "keys.yaml", "? " * 50_000)
    define(tiny, "aliases.yaml", "a: &a [*a, *a]\n")
    define(tiny, "deep.test.yaml", "[" * 200_000)
    lines = [f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 9)}]" for n in range(1, 30)]
    define(tiny, "laughs.yaml", "\n".join(["x0: &x0 ha", *lines, ""]))


def settings_in_settings(tiny: Tiny) -> None:
    (tiny.root / "odfbuild.yaml").write_text("kind: Project\ncontent: " + "[" * 200_000)


def many_small_values(tiny: Tiny) -> None:
    define(tiny, "items.yaml", "a:\n" + "- a\n" * 500_000)
    define(tiny, "flow.yaml", "a: [" + "a," * 1_000_000 + "]\n")
    define(tiny, "documents.yaml", "---\na: b\n" * 200_000)
    define(tiny, "wrong.yaml", "---\na: b\n" * 20_000)


def a_file_of_many_megabytes(tiny: Tiny) -> None:
    define(tiny, "large.yaml", "# " + "x" * (40 << 20))


def clauses_that_double(tiny: Tiny) -> None:
    parts = [
        f"c{n} AS (SELECT x.* FROM c{n - 1} x JOIN c{n - 1} y ON x.id = y.id)" for n in range(1, 40)
    ]
    derive(tiny, f"WITH c0 AS (SELECT * FROM source), {', '.join(parts)} SELECT * FROM c39")


def expressions_that_double(tiny: Tiny) -> None:
    parts = [
        f"c{n} AS (SELECT event_time, id, value + value AS value FROM c{n - 1})"
        for n in range(1, 40)
    ]
    derive(tiny, f"WITH c0 AS (SELECT * FROM source), {', '.join(parts)} SELECT * FROM c39")


def five_thousand_unions(tiny: Tiny) -> None:
    derive(tiny, " UNION ALL ".join(["SELECT event_time, id FROM source"] * 5_000))


def expressions_in_expressions(tiny: Tiny) -> None:
    derive(tiny, f"SELECT event_time, {'(' * 3_000}id{')' * 3_000} AS id FROM source")


def cases_in_cases(tiny: Tiny) -> None:
    cases = "CASE WHEN id > 1 THEN 1 ELSE " * 500
    derive(tiny, f"SELECT event_time, {cases}1{' END' * 500} AS id FROM source")


def fifty_thousand_columns(tiny: Tiny) -> None:
    derive(tiny, f"SELECT {', '.join(['id'] * 50_000)} FROM source")


def a_query_of_megabytes(tiny: Tiny) -> None:
    derive(tiny, "SELECT event_time, id FROM source -- " + "x" * 1_500_000)


# --- Files that are none ---


def links_in_a_loop(tiny: Tiny) -> None:
    (tiny.root / "datasets" / "up").symlink_to("..")
    (tiny.root / "datasets" / "self.yaml").symlink_to("self.yaml")
    (tiny.root / "datasets" / "other").symlink_to("another")
    (tiny.root / "datasets" / "another").symlink_to("other")


def links_that_double(tiny: Tiny) -> None:
    folder = tiny.root / "datasets"
    for number in range(30):
        below = folder / f"f{number}"
        below.mkdir()
        (folder / f"l{number}").symlink_to(f"f{number}")
        folder = below


def a_pipe_as_definition(tiny: Tiny) -> None:
    os.mkfifo(tiny.root / "datasets" / "pipe.yaml")
    os.mkfifo(tiny.root / "datasets" / "pipe.yaml.j2")
    os.mkfifo(tiny.root / "datasets" / "pipe.test.yaml")


def devices_as_definitions(tiny: Tiny) -> None:
    for name in ("zero.yaml", "zero.yaml.j2", "zero.test.yaml"):
        (tiny.root / "datasets" / name).symlink_to("/dev/zero")


def an_object_that_never_ends(tiny: Tiny) -> None:
    for data in (tiny.root / "chains").glob("*/data/*"):
        data.unlink()
        data.symlink_to("/dev/zero")


def blocks_and_heads_that_never_end(tiny: Tiny) -> None:
    for each in (tiny.root / "chains").glob("*/refs/head"):
        each.unlink()
        each.symlink_to("/dev/zero")


def pipes_and_devices_as_a_cache(tiny: Tiny) -> None:
    files = [each for each in (tiny.root / ".odfbuild").rglob("*") if each.is_file()]
    assert {each.name for each in files} >= {"decisions.bin", "definitions.bin", "seal"}
    for number, each in enumerate(sorted(files)):
        each.unlink()
        if each.parent.name == ".odfbuild" or number % 2:
            os.mkfifo(each)
        else:
            each.symlink_to("/dev/zero")


# --- Text ---


def a_name_that_ends_the_marker(tiny: Tiny) -> None:
    settings = tiny.root / "odfbuild.yaml"
    lines = settings.read_text().splitlines()
    kept = [each for each in lines if not each.startswith("  name:")]
    at = kept.index("content:") + 1
    kept.insert(at, '  name: "p--><script>alert(1)</script>\\n# INJECTED @everyone"')
    settings.write_text("\n".join([*kept, ""]))


def commands_to_the_runner(tiny: Tiny) -> None:
    define(tiny, "x.yaml", 'kind: "a\\n::set-output name=plan_digest::forged\\n::add-mask::b"\n')


COSTLY: tuple[Make, ...] = (
    blank_lines_before_a_template,
    many_openings_of_expressions,
    a_text_of_gigabytes,
    nested_loops,
    ten_thousand_million_instances,
    values_in_values,
    settings_in_settings,
    many_small_values,
    a_file_of_many_megabytes,
    clauses_that_double,
    expressions_that_double,
    five_thousand_unions,
    expressions_in_expressions,
    cases_in_cases,
    fifty_thousand_columns,
    a_query_of_megabytes,
    links_in_a_loop,
    links_that_double,
)
"""Endless work."""
PROJECTS: tuple[Make, ...] = (
    a_bare_repository_inside,
    includes_of_the_token_of_the_job,
    includes_of_hidden_files,
    definitions_that_are_links_to_hidden_files,
    *COSTLY,
    a_pipe_as_definition,
    pipes_and_devices_as_a_cache,
    devices_as_definitions,
    an_object_that_never_ends,
    blocks_and_heads_that_never_end,
    a_name_that_ends_the_marker,
    commands_to_the_runner,
)


def hidden(tiny: Tiny) -> Path:
    """A folder beside the project that is none of its business."""
    folder = tiny.root.parent / "private"
    folder.mkdir(exist_ok=True)
    return folder
