"""How much a transfer may be, and what it costs."""

from __future__ import annotations

import pytest

from odfbuild.errors import RepositoryError
from odfbuild.odf.multihash import Multihash
from odfbuild.repository.smart import connection
from odfbuild.repository.smart.client import SmartDataset
from tests.repository.smart_chains import NAME, in_memory, prices, publication
from tests.repository.strict_peer import StrictServer, serving


def test_61_a_message_that_is_too_long_is_refused_before_it_is_sent(tmp_path, monkeypatch):
    monkeypatch.setattr(connection, "MAX_MESSAGE", 1_000)
    store = prices(tmp_path)
    with serving(StrictServer()) as server:
        with pytest.raises(RepositoryError) as error:
            SmartDataset(server.url(NAME)).publish(publication(store))
        assert error.value.code == "E1049"
        server.datasets[NAME] = in_memory(store)
        with (
            pytest.raises(RepositoryError) as error,
            SmartDataset(server.url(NAME)).offer(store.head(), None),
        ):
            pass
        assert error.value.code == "E1049"


def test_61_a_long_message_is_sent_in_frames_that_peers_take(tmp_path, monkeypatch):
    monkeypatch.setattr(connection, "MAX_FRAME", 1_000)
    store = prices(tmp_path)
    with serving(StrictServer()) as server:
        SmartDataset(server.url(NAME)).publish(publication(store))
        assert server.datasets[NAME] == in_memory(store)
        assert server.complaints == []


def test_a_head_that_is_not_there_any_more_is_told(tmp_path):
    store = prices(tmp_path)
    gone = Multihash.sha3_256(b"gone")
    with (
        serving(StrictServer(datasets={NAME: in_memory(store)})) as server,
        pytest.raises(RepositoryError),
        SmartDataset(server.url(NAME)).offer(gone, None),
    ):
        pass
