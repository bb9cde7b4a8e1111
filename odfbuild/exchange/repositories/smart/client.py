"""A dataset on a server of the Smart Transfer Protocol: read and written in a dialogue.

Blocks come in one archive, objects by HTTP from where the server says; very many blocks come by the
Simple protocol, in packs, where the server has such, as `odfbuild serve`. A push is committed by
the server, which compares the head; afterwards we ask for it, because a late request for progress
looks like the confirmation. Sources: RFC-008; reference behaviour, "Smart Transfer Protocol".
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, urlsplit

from odfbuild.errors import Code, IntegrityError, RepositoryError, StaleHeadError
from odfbuild.exchange.repositories.contract import (
    ObjectFile,
    Offer,
    Progress,
    Publication,
    RawBlock,
)
from odfbuild.exchange.repositories.http import WebFolder
from odfbuild.exchange.repositories.simple import SimpleDataset, distinct, info_bytes
from odfbuild.exchange.repositories.smart.archive import pack, unpack
from odfbuild.exchange.repositories.smart.connection import (
    Dialogue,
    connect,
    foreign,
    refusal,
    unreachable,
)
from odfbuild.exchange.repositories.smart.http import bearer, client, get_json, get_small
from odfbuild.exchange.repositories.smart.messages import (
    Failure,
    Header,
    Internal,
    InvalidHead,
    InvalidInterval,
    NameCollision,
    Nothing,
    ObjectReference,
    PullMetadataResponse,
    PullObjectsRequest,
    PullObjectsResponse,
    PullRequest,
    PullResponse,
    PushComplete,
    PushMetadataRequest,
    PushObjectsRequest,
    PushObjectsResponse,
    PushRequest,
    RefCollision,
    Refused,
    TransferPlan,
    TransferUrl,
    Uploading,
)
from odfbuild.exchange.repositories.smart.objects import AT_ONCE, Transfers
from odfbuild.odf.flatbuffers.reader import decode_place
from odfbuild.odf.multihash import Multihash
from odfbuild.values import Value

_PAGE = 1_000
"""Objects that are asked for at once: signed URLs expire."""

_MANY = 10_000
"""New blocks from which on packs are asked for."""

_MAX_LIST = 32 << 20
"""Bytes of a list of datasets: some 100 000."""

PULLED = "Client pull flow succeeded"
PUSHED = "Client push flow succeeded"


class SmartDataset:
    """The dataset at `url`, `odf+http(s)://host/[account/]name` or the same without `odf+`.

    `visibility` is that of a dataset which a push creates there.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        visibility: Literal["Private", "Public"] = "Private",
    ) -> None:
        self._base = base_url(url)
        self.address = f"odf+{self._base}"
        self._token = token
        self._visibility: Literal["Private", "Public"] = visibility

    def __repr__(self) -> str:
        return f"SmartDataset({self.address!r})"

    def head(self) -> Multihash | None:
        """The newest block; `None` when there is no such dataset, or none for us."""
        body = get_small(f"{self._base}refs/head", self._token, self.address)
        if body is None:
            return None
        try:
            return Multihash.parse(body.decode("ascii").strip())
        except ValueError:
            raise foreign(self.address, "refs/head does not hold the hash of a block") from None

    def info(self, name: str) -> bytes | None:
        """The file `info/<name>`; peers have none."""
        url = f"{self._base}info/{quote(name, safe='')}"
        return get_small(url, self._token, self.address, (404, 405), info_bytes(name))

    @contextmanager
    def offer(self, head: Multihash, after: Multihash | None) -> Iterator[Offer]:
        """The blocks of `(after, head]`; all of them when `after` is not among them."""
        if after == head:
            yield SmartOffer(head, (), self, None)
            return
        with self._plain() as plain:
            offer = plain.packed_offer(head, after) if self._are_many(head, after) else None
            if offer is not None:
                yield offer
                return
        with connect(self._base, "pull", self._token, self.address) as dialogue:
            blocks = self._ask_blocks(dialogue, head, after)
            yield SmartOffer(head, blocks, self, dialogue)
            dialogue.close(PULLED)

    def publish(self, publication: Publication, progress: Progress | None = None) -> None:
        """Send blocks and objects, which the server commits; see `WritableDataset`."""
        if not publication.blocks:
            self._check_there(publication.expected)
            self._put_info(publication.info)
            return
        try:
            with connect(self._base, "push", self._token, self.address) as dialogue:
                self._push(dialogue, publication, progress)
        except Refused as refused:
            if isinstance(refused.failure, Internal):
                # A head that moved meanwhile has no name of its own in the protocol. Peers leave
                # the seed of a new dataset behind, which is ours.
                ours = {each.hash for each in publication.blocks}
                if (there := self.head()) not in ours | {publication.expected}:
                    raise self._stale(there, publication.expected) from None
            raise self._error(refused.failure) from None
        except TimeoutError:
            raise foreign(self.address, "it does not answer") from None

    # --- Pull ---

    @contextmanager
    def _plain(self) -> Iterator[SimpleDataset]:
        """The same dataset by the Simple protocol."""
        shown = bearer(self._token).get("Authorization")
        with closing(WebFolder.at(self._base.rstrip("/"), shown)) as folder:
            yield SimpleDataset(folder)

    def _are_many(self, head: Multihash, after: Multihash | None) -> bool:
        """Whether there are too many blocks behind `after` for a message that is quick to make."""
        number = self._number(head)
        if number is None or number < _MANY:
            return False
        before = self._number(after) if after is not None else None
        return number - (before or 0) >= _MANY

    def _number(self, block: Multihash) -> int | None:
        """The number of a block; `None` where the server does not show it."""
        url, limit = f"{self._base}blocks/{block}", 1 << 20
        data = get_small(url, self._token, self.address, (401, 403, 404, 405), limit)
        try:
            return None if data is None else decode_place(data)[0]
        except ValueError:
            return None

    def _ask_blocks(
        self, dialogue: Dialogue, head: Multihash, after: Multihash | None
    ) -> tuple[RawBlock, ...]:
        try:
            dialogue.send(PullRequest(after, head, force_update_if_diverged=True))
            if dialogue.receive(PullResponse).transfer_plan.num_blocks == 0:
                raise foreign(self.address, f"it has no block up to {head}")
            dialogue.send(Nothing())
            blocks = unpack(dialogue.receive(PullMetadataResponse).blocks)
        except Refused as refused:
            raise self._error(refused.failure) from None
        except TimeoutError:
            raise foreign(self.address, "it does not answer") from None
        if not blocks or blocks[-1].hash != head:
            raise IntegrityError(
                f"the blocks that came do not end with {head}",
                code="E1045",
                notes=(f"repository: {self.address}", "its head may have moved while it was read"),
                help="run the command again",
            )
        return blocks

    def ask_objects(
        self, dialogue: Dialogue | None, wanted: Sequence[ObjectFile]
    ) -> Iterator[tuple[ObjectFile, TransferUrl]]:
        """Where objects are: as the server says in a dialogue, or else on the server itself."""
        if dialogue is None:
            own = bearer(self._token)
            yield from ((each, _own_url(self._base, each, own)) for each in wanted)
            return
        references = tuple(map(ObjectReference.of, wanted))
        try:
            dialogue.send(PullObjectsRequest(references))
            found = dialogue.receive(PullObjectsResponse).object_transfer_strategies
        except Refused as refused:
            raise self._error(refused.failure) from None
        except TimeoutError:
            raise foreign(self.address, "it does not answer") from None
        named = {each.object_file.key: each for each in found}
        for file in wanted:
            strategy = named.get((file.kind, file.hash))
            if strategy is None:
                raise foreign(self.address, f"it does not say where object {file.hash} is")
            yield file, strategy.download_from

    def transfers(self, progress: Progress | None) -> Transfers:
        """Transfers of this dataset's objects."""
        return Transfers(client(), self._base, self.address, progress)

    # --- Push ---

    def _push(
        self,
        dialogue: Dialogue,
        publication: Publication,
        progress: Progress | None,
    ) -> None:
        dialogue.send(
            PushRequest(
                TransferPlan.of(publication.blocks),
                publication.expected,
                publication.force,
                self._visibility,
            )
        )
        dialogue.receive(Nothing)
        dialogue.send(PushMetadataRequest(pack(publication.blocks)))
        dialogue.receive(Nothing)
        objects = distinct(publication.objects)
        pages = [objects[at : at + _PAGE] for at in range(0, len(objects), _PAGE)] or [[]]
        for number, page in enumerate(pages, 1):
            references = tuple(map(ObjectReference.of, page))
            dialogue.send(PushObjectsRequest(references, is_truncated=number < len(pages)))
            self._upload(dialogue, page, publication.files, progress)
        info = {name: base64.b64encode(data).decode() for name, data in publication.info.items()}
        dialogue.send(PushComplete(info))
        self._confirm(dialogue, publication.blocks[-1].hash)

    def _upload(
        self,
        dialogue: Dialogue,
        page: Sequence[ObjectFile],
        files: Mapping[Multihash, Path],
        progress: Progress | None,
    ) -> None:
        """Send what the server lacks, and tell it how far that is whenever it asks."""
        strategies = dialogue.receive(PushObjectsResponse).object_transfer_strategies
        known = {(each.kind, each.hash): each for each in page}
        transfers = self.transfers(progress)
        work = []
        for each in strategies:
            file = known.get(each.object_file.key)
            if each.push_strategy == "SkipUpload":
                continue
            if file is None or each.upload_to is None:
                raise foreign(self.address, "it asks for an object that was not offered")
            work.append((transfers.upload, (each.upload_to, file, files[file.hash])))
        with _pool(transfers) as pool:
            futures = transfers.start(pool, work)
            while not all(each.done() for each in futures):
                try:
                    dialogue.receive(Nothing, seconds=0.2)
                except TimeoutError:
                    continue
                dialogue.send(Uploading(transfers.done))
            _finish(futures)
        dialogue.send(Uploading(None))

    def _confirm(self, dialogue: Dialogue, head: Multihash) -> None:
        """Wait until the server has the new head, whichever of its messages says so."""
        try:
            while True:
                dialogue.receive(Nothing)
                if self.head() == head:
                    break
        except RepositoryError as error:
            if error.code == Code.TRANSFER_CUT_OFF and self.head() == head:
                return
            raise
        dialogue.close(PUSHED)

    def _put_info(self, files: Mapping[str, bytes]) -> None:
        """Lay small files beside the chain, where the server keeps such."""
        import httpx

        for name, data in files.items():
            url = f"{self._base}info/{quote(name, safe='')}"
            try:
                response = client().put(url, content=data, headers=bearer(self._token))
            except httpx.HTTPError as error:
                raise unreachable(self.address, str(error) or type(error).__name__) from None
            if not response.is_success and response.status_code not in (404, 405):
                raise refusal(self.address, response.status_code, response.text[:300])

    # --- Both ---

    def _check_there(self, expected: Multihash | None) -> None:
        if (there := self.head()) != expected:
            raise self._stale(there, expected)

    def _error(self, failure: Failure) -> RepositoryError | StaleHeadError:
        match failure:
            case InvalidHead():
                # As peers name them: theirs is the expected one.
                return self._stale(failure.expected_head, failure.actual_head)
            case InvalidInterval():
                return self._failed(f"block {failure.tail} is not in its history")
            case RefCollision():
                return RepositoryError(
                    "the repository has this dataset under another name",
                    code="E1050",
                    notes=(f"repository: {self.address}", f"identity: {failure.dataset_id}"),
                    help="push to that name",
                )
            case NameCollision():
                return RepositoryError(
                    f"the repository has another dataset of this name: {failure.dataset_alias}",
                    code="E1050",
                    notes=(f"repository: {self.address}",),
                    help="push to another name",
                )
            case Internal():
                return self._failed(failure.error_message)
        return RepositoryError(
            "the dataset there has another identity or kind, and is not replaced",
            code="E1050",
            notes=(f"repository: {self.address}",),
            help="push to another name",
        )

    def _failed(self, why: str) -> RepositoryError:
        return RepositoryError(
            f"the server reports an error: {why}",
            code="E1043",
            notes=(f"repository: {self.address}", "nothing was changed there"),
            help="run the command again; if it stays, its log says more",
        )

    def _stale(self, there: Multihash | None, expected: Multihash | None) -> StaleHeadError:
        return StaleHeadError(
            f"{self.address} was changed by another writer in the meantime",
            code="E0701",
            notes=(
                f"expected head: {expected or 'none'}",
                f"actual head:   {there or 'none'}",
                "nothing was changed there",
            ),
            help="run the command again: it compares the histories anew",
        )


class SmartOffer(Value):
    """What a server has behind a known block; see `Offer`."""

    head: Multihash
    blocks: Sequence[RawBlock]
    _dataset: SmartDataset
    _dialogue: Dialogue | None

    def download(
        self, objects: Sequence[ObjectFile], folder: Path, progress: Progress | None = None
    ) -> None:
        """Bring objects to `folder/<kind>/<hash>`; see `Offer`."""
        targets = {each: folder / each.kind / str(each.hash) for each in distinct(objects)}
        wanted = [each for each, target in targets.items() if not target.exists()]
        for at in range(0, len(wanted), _PAGE):
            transfers = self._dataset.transfers(progress)
            places = self._dataset.ask_objects(self._dialogue, wanted[at : at + _PAGE])
            work = [(transfers.download, (url, file, targets[file])) for file, url in places]
            with _pool(transfers) as pool:
                _finish(transfers.start(pool, work))


def base_url(url: str) -> str:
    """The HTTP address of a dataset or repository, with a slash at its end and no credentials."""
    parts = urlsplit(url.removeprefix("odf+"))
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path.rstrip('/')}/"


def is_smart(url: str, token: str | None = None) -> bool:
    """Whether a server that speaks the Smart Transfer Protocol answers at the repository `url`.

    Asks for `/info`, which static servers do not have. Never raises because of the answer.
    """
    base = base_url(url)
    try:
        found = get_json(f"{base}info", token, base)
    except RepositoryError:
        return False
    return found is not None and isinstance(found.get("isMultiTenant"), bool)


def account_of(repository: str, token: str | None) -> str | None:
    """The account that names without one belong to; `None` where the server knows no accounts."""
    base = base_url(repository)
    info = get_json(f"{base}info", token, base)
    if info is None or info.get("isMultiTenant") is not True:
        return None
    me = get_json(f"{base}accounts/me", token, base)
    name = me.get("accountName") if me else None
    return name if isinstance(name, str) else None


def name_of(repository: str, dataset_id: str, token: str | None) -> str | None:
    """The name of a dataset that a repository has, by its identity; `None` when it has none."""
    base = base_url(repository)
    found = get_json(f"{base}datasets/{quote(dataset_id, safe=':')}", token, base)
    name = found.get("datasetName") if found else None
    return name if isinstance(name, str) else None


def list_datasets(repository: str, token: str | None) -> list[Mapping[str, Any]] | None:
    """What `odfbuild serve` says of its datasets; `None` where the server cannot tell."""
    base = base_url(repository)
    found = get_json(f"{base}datasets", token, base, _MAX_LIST)
    listed = found.get("datasets") if found else None
    if not isinstance(listed, list):
        return None
    return [each for each in listed if isinstance(each, dict)]


def _own_url(base: str, file: ObjectFile, headers: Mapping[str, str]) -> TransferUrl:
    url = f"{base}{file.kind}/{file.hash}"
    return TransferUrl(url, tuple(Header(name, value) for name, value in headers.items()))


@contextmanager
def _pool(transfers: Transfers) -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="objects") as pool:
        try:
            yield pool
        except BaseException:
            transfers.stop()
            raise


def _finish(futures: Sequence[Future[None]]) -> None:
    """Wait for transfers; the error of the one that failed first is raised."""
    failed = [error for each in wait_for(futures).done if (error := each.exception()) is not None]
    if failed:
        raise min(failed, key=lambda error: getattr(error, "code", "") == Code.TRANSFER_CUT_OFF)
