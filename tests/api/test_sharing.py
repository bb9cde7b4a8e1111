"""`Project.pull` and `Project.push`."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from odfbuild import OdfbuildError, Project, RepositoryError, TransferStatus
from tests.exchange.repositories.two_projects import Pair


@pytest.fixture
def pair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Pair:
    return Pair.in_folder(tmp_path, monkeypatch, capsys)


def test_datasets_are_published_and_pulled(pair: Pair, caplog: pytest.LogCaptureFixture) -> None:
    theirs, ours = Project(pair.theirs.root), Project(pair.ours)
    repository = str(pair.repository)
    would = theirs.push(repository=repository, dry_run=True)
    assert [each.status for each in would] == [TransferStatus.NEW] * 2
    assert not pair.repository.exists()
    published = theirs.push(repository=repository)
    assert {each.name: each.records for each in published} == {"root": 3, "derived": 3}

    with caplog.at_level(logging.INFO, "odfbuild.exchange.repositories"):
        [pulled] = ours.pull("root", repository="acme", name="prices")
    assert (pulled.name, pulled.status, pulled.before) == ("prices", TransferStatus.NEW, None)
    assert pulled.after == published[-1].after
    assert "prices: new: 4 blocks, 3 records" in caplog.text
    assert ours.datasets()["prices"].records == 3
    assert [each.status for each in ours.pull()] == [TransferStatus.UP_TO_DATE]


def test_what_fails_with_a_dataset_is_told_and_what_is_wrong_with_the_request_raised(
    pair: Pair,
) -> None:
    ours = Project(pair.ours)
    [failed] = ours.pull("acme/nothing")
    assert failed.status is TransferStatus.FAILED
    assert isinstance(failed.error, RepositoryError)
    assert failed.error.code == "E1020"
    for wrong in (
        lambda: ours.pull("acme/a", "acme/b", name="c"),
        lambda: ours.pull("unknown"),
        lambda: ours.push("unknown", repository="acme"),
        lambda: Project(pair.theirs.root).push("root"),
        lambda: Project(pair.theirs.root).push("root", repository="nobody"),
    ):
        with pytest.raises(OdfbuildError) as caught:
            wrong()
        assert caught.value.help
