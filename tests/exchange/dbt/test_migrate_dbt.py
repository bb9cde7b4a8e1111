"""A dbt project becomes an odfbuild project, with a report of what needs work.

`bakery` is what dbt builds as it is; `by_hand` adds what a machine cannot move.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from odfbuild.cli.main import run
from tests.report.golden import assert_golden

HERE = Path(__file__).parent


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the dbt project in `dbt`, all of it."""
    shutil.copytree(HERE / "bakery", tmp_path / "dbt")
    shutil.copytree(HERE / "by_hand", tmp_path / "dbt", dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    return tmp_path


def files_in(folder: Path) -> dict[str, str]:
    """Texts by name, without what is disposable."""
    return {
        str(file.relative_to(folder)): file.read_text()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and ".odfbuild" not in file.parts
    }


def test_the_report_says_what_was_moved_and_what_needs_work(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for form in ("text", "md", "json"):
        assert run(["migrate", "dbt", "dbt", "--to", "new", "-n", "--format", form]) == 0
        suffix = "txt" if form == "text" else form
        assert_golden(f"dbt/report.{suffix}", capsys.readouterr().out.rstrip("\n"))
    assert not (folder / "new").exists()


def test_definitions_keep_queries_as_people_wrote_them(folder: Path) -> None:
    assert run(["migrate", "dbt", "dbt", "--to", "new"]) == 0
    for name, text in files_in(folder / "new").items():
        if not name.startswith("data/"):
            assert_golden(f"dbt/new/{name}", text.rstrip("\n"))


def test_what_was_moved_is_valid_and_formatted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["migrate", "dbt", "dbt", "--to", "new"]) == 0
    assert run(["-C", "new", "validate"]) == 0
    assert capsys.readouterr().out.endswith("10 datasets defined, all valid.\n")
    assert run(["-C", "new", "fmt", "--check"]) == 0


def test_another_run_changes_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["migrate", "dbt", "dbt", "--to", "new"]) == 0
    before = files_in(folder / "new")
    capsys.readouterr()
    assert run(["migrate", "dbt", "dbt", "--to", "new", "--json"]) == 0
    assert files_in(folder / "new") == before
    assert json.loads(capsys.readouterr().out)["written"] == []


def test_a_name_that_was_changed_stays(folder: Path) -> None:
    assert run(["-q", "migrate", "dbt", "dbt", "--to", "new"]) == 0
    names = folder / "new" / "dbt-names.yaml"
    names.write_text(names.read_text().replace(": daily-sales", ": sales.daily"))
    assert run(["-q", "migrate", "dbt", "dbt", "--to", "other"]) == 0
    shutil.copy(names, folder / "other")
    assert run(["-q", "migrate", "dbt", "dbt", "--to", "other", "-y"]) == 0
    assert (folder / "other" / "datasets" / "marts" / "sales.daily.yaml").exists()
    assert names.read_text() == (folder / "other" / "dbt-names.yaml").read_text()


def test_files_that_somebody_changed_are_overwritten_only_with_consent(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["-q", "migrate", "dbt", "dbt", "--to", "new"]) == 0
    changed = folder / "new" / "datasets" / "marts" / "daily-sales.yaml"
    text = changed.read_text()
    changed.write_text(f"{text}# mine\n")
    capsys.readouterr()
    assert run(["migrate", "dbt", "dbt", "--to", "new"]) == 1
    assert "E0334" in capsys.readouterr().err
    assert changed.read_text() == f"{text}# mine\n"
    assert run(["-q", "migrate", "dbt", "dbt", "--to", "new", "--auto-approve"]) == 0
    assert changed.read_text() == text


def test_a_manifest_gives_the_same_datasets_as_the_sources(folder: Path) -> None:
    shutil.rmtree("dbt")
    shutil.copytree(HERE / "bakery", "dbt")
    assert run(["-q", "migrate", "dbt", "dbt", "--to", "new"]) == 0
    from_sources = files_in(folder / "new")
    Path("dbt/target").mkdir()
    shutil.copy(HERE / "manifest.json", "dbt/target")
    shutil.rmtree("new")
    assert run(["-q", "migrate", "dbt", "dbt", "--to", "new"]) == 0
    assert files_in(folder / "new") == from_sources


def test_a_variable_that_is_given_takes_the_place_of_the_project_s(folder: Path) -> None:
    assert run(["-q", "--var", "first_day=2025-01-01", "migrate", "dbt", "dbt", "--to", "new"]) == 0
    query = (folder / "new" / "datasets" / "staging" / "stg-sales.yaml").read_text()
    assert "sold_at >= '2025-01-01'" in query


def test_schemas_are_put_in_front_of_names_if_that_is_asked_for(folder: Path) -> None:
    settings = folder / "dbt" / "dbt_project.yml"
    settings.write_text(settings.read_text().replace("+group: sales", "+schema: shop_marts"))
    assert run(["-q", "migrate", "dbt", "dbt", "--to", "new", "--schemas"]) == 0
    assert (folder / "new" / "datasets" / "marts" / "shop-marts.daily-sales.yaml").exists()


def test_a_source_that_a_seed_fills_is_the_dataset_of_the_seed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = folder / "dbt" / "dbt_project.yml"
    settings.write_text(
        settings.read_text().replace("+column_types", "+schema: till\n      +column_types")
    )
    models = folder / "dbt" / "models"
    (models / "prices.yml").write_text(
        "sources: [{name: list, schema: till, tables: [{name: raw_prices}]}]"
    )
    (models / "prices.sql").write_text("select product from {{ source('list', 'raw_prices') }}")
    assert run(["migrate", "dbt", "dbt", "--to", "new"]) == 0
    assert "source list.raw_prices  raw-prices" in capsys.readouterr().out
    assert "datasetRef: raw-prices" in (folder / "new" / "datasets" / "prices.yaml").read_text()


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("data/other/*.csv", "data/other/*.csv is not there"),
        ("D:\\\\data\\\\other.csv", "is not there"),
        ("s3://bucket/other.parquet", "s3://bucket/other.parquet cannot be read here"),
    ],
)
def test_files_that_are_not_there_leave_the_columns_that_queries_name(
    folder: Path, capsys: pytest.CaptureFixture[str], location: str, said: str
) -> None:
    models = folder / "dbt" / "models"
    (models / "other.yml").write_text(
        "sources: [{name: s, tables: [{name: other, "
        f'meta: {{external_location: "{location}"}}}}]}}]'
    )
    (models / "other.sql").write_text("select a, b from {{ source('s', 'other') }}")
    assert run(["migrate", "dbt", "dbt", "--to", "new"]) == 0
    report = capsys.readouterr().out
    assert said in report
    assert "model other " in report.partition("Needs work")[0]
    assert run(["-C", "new", "validate"]) == 0


def test_a_definition_that_is_not_valid_is_work_by_hand(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "dbt" / "models" / "late.sql").write_text(
        "select *, current_date as today from {{ ref('stg_shops') }}"
    )
    assert run(["migrate", "dbt", "dbt", "--to", "new"]) == 0
    assert "model late (late)\n    datasets/late.yaml:17: E0505:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("code", "spoil"),
    [
        ("E0180", lambda dbt: (dbt / "dbt_project.yml").unlink()),
        ("E0181", lambda dbt: (dbt / "profiles.yml").unlink()),
        ("E0182", lambda dbt: _write(dbt / "target" / "manifest.json", '{"nodes": []}')),
        ("E0182", lambda dbt: _write(dbt / "target" / "manifest.json", "[" * 100_000)),
        (
            "E0182",
            lambda dbt: _write(
                dbt / "target" / "manifest.json",
                '{"metadata": {"adapter_type": "duckdb"}, "sources": {}, '
                '"nodes": {"a": {"resource_type": "seed"}}}',
            ),
        ),
        ("E0183", lambda dbt: _write(dbt.parent / "new" / "dbt-names.yaml", "a: no_name")),
        ("E0183", lambda dbt: _write(dbt.parent / "new" / "dbt-names.yaml", "a: x\nb: X")),
        ("E0101", lambda dbt: _write(dbt / "models" / "schema.yml", "models: [")),
        ("E0103", lambda dbt: (dbt / "models" / "a.sql").write_bytes(b"\xff")),
    ],
)
def test_what_cannot_be_read_is_an_error_that_says_what_to_do(
    folder: Path, capsys: pytest.CaptureFixture[str], code: str, spoil
) -> None:
    spoil(folder / "dbt")
    assert run(["migrate", "dbt", "dbt", "--to", "new"]) == 1
    said = capsys.readouterr().err
    assert f"error[{code}]" in said
    assert "help:" in said
    assert not (folder / "new" / "datasets").exists()


def test_a_link_out_of_the_project_brings_no_file(folder: Path) -> None:
    (folder / "secret.csv").write_text("id,word\n1,hidden\n")
    (folder / "dbt" / "seeds" / "raw_secret.csv").symlink_to(folder / "secret.csv")
    assert run(["-q", "migrate", "dbt", "dbt", "--to", "new"]) == 0
    assert not any("hidden" in text for text in files_in(folder / "new").values())


def test_what_reads_a_disabled_model_is_not_moved(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = folder / "dbt" / "dbt_project.yml"
    settings.write_text(settings.read_text().replace("+tags: [staging]", "+enabled: false"))
    assert run(["migrate", "dbt", "dbt", "--to", "new"]) == 0
    report = capsys.readouterr().out
    assert (
        "model daily_sales\n    models/marts/daily_sales.sql: it reads stg_sales, which is"
        in report
    )
    assert "test no_free_bread\n    tests/no_free_bread.sql: stg_sales is disabled" in report


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


def test_the_adapter_is_named_by_an_option_or_the_nearest_one_is_proposed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "dbt" / "profiles.yml").unlink()
    assert run(["migrate", "dbt", "dbt", "--to", "new", "--adapter", "ducksdb"]) == 1
    assert "did you mean 'duckdb'?" in capsys.readouterr().err
    assert run(["migrate", "dbt", "dbt", "--to", "new", "--adapter", "duckdb"]) == 0
