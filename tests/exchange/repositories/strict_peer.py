"""Peers that speak the Smart Transfer Protocol as the reference implementation does, to the letter.

Written from the facts about it and not with odfbuild's own messages: JSON by position, `Ok`/`Err`,
payloads as lists of integers, and every frame but text and close is an error. What they take as an
error is listed in `complaints`, which tests look at.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import hashlib
import io
import json
import os
import socket
import struct
import tarfile
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from http.client import HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from odfbuild.odf.flatbuffers.reader import decode_block
from odfbuild.odf.model import AddData, ExecuteTransform

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
FRAME, MESSAGE = 16 << 20, 64 << 20
PLAN = {
    "num_blocks",
    "num_objects",
    "num_records",
    "bytes_in_raw_blocks",
    "bytes_in_raw_objects",
}


def sha3(data: bytes) -> str:
    return "f1620" + hashlib.sha3_256(data).hexdigest()


class Complaint(Exception):
    """What a strict peer does not take."""


class Gone(Exception):
    """The other side closed: `code` and `reason` of its frame, 1006 without one."""

    def __init__(self, code: int, reason: str = "") -> None:
        super().__init__(f"{code} {reason}")
        self.code, self.reason = code, reason


@dataclass
class Frames:
    """Frames over a socket; `masked`: those that we send, as a client has to."""

    read: Callable[[int], bytes]
    write: Callable[[bytes], object]
    masked: bool

    def send(self, message: object) -> None:
        self.frame(1, json.dumps(message, separators=(",", ":")).encode())

    def close(self, code: int = 1000, reason: str = "") -> None:
        assert len(reason.encode()) <= 123
        self.frame(8, struct.pack("!H", code) + reason.encode())

    def frame(self, opcode: int, data: bytes, *, first: int = 0x80) -> None:
        size, mask = len(data), 0x80 * self.masked
        if size < 126:
            head = struct.pack("!BB", first | opcode, mask | size)
        elif size < 1 << 16:
            head = struct.pack("!BBH", first | opcode, mask | 126, size)
        else:
            head = struct.pack("!BBQ", first | opcode, mask | 127, size)
        # A mask of zeros is a mask.
        self.write(head + (bytes(4) if self.masked else b"") + data)

    def receive(self) -> dict:
        """A message. `Gone` when the other side closed."""
        text = b""
        while True:
            first, second = self._exactly(2)
            opcode, size = first & 15, second & 127
            if first & 0x70:
                raise Complaint("a compressed frame, or one of an unknown extension")
            if bool(second & 0x80) == self.masked:
                raise Complaint("a frame with the wrong masking")
            if size > 125:
                size = int.from_bytes(self._exactly(2 if size == 126 else 8), "big")
            if size > FRAME or len(text) + size > MESSAGE:
                raise Complaint(f"a frame of {size} bytes")
            mask = b"" if self.masked else self._exactly(4)
            data = self._exactly(size)
            if mask and size:
                times = -(-size // 4)
                key = int.from_bytes((mask * times)[:size], "big")
                data = (int.from_bytes(data, "big") ^ key).to_bytes(size, "big")
            if opcode == 8:
                code = int.from_bytes(data[:2], "big") if data else 1005
                raise Gone(code, data[2:].decode())
            if opcode not in ((0,) if text else (1,)):
                raise Complaint(f"a frame that is no text: opcode {opcode}")
            text += data
            if first & 0x80:
                message = json.loads(text)
                if not isinstance(message, dict):
                    raise Complaint(f"no object: {text[:100]!r}")
                return message

    def _exactly(self, size: int) -> bytes:
        parts, left = [], size
        while left:
            try:
                part = self.read(left)
            except OSError:
                part = b""
            if not part:
                raise Gone(1006)
            parts.append(part)
            left -= len(part)
        return b"".join(parts)


def pack(blocks: list[tuple[str, bytes]]) -> dict:
    """A batch of metadata as tar-rs writes it: GNU headers with size and checksum alone."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, data in blocks:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.type = len(data), 0, tarfile.AREGTYPE
            tar.addfile(entry, io.BytesIO(data))
    return batch(len(blocks), gzip.compress(out.getvalue()))


def batch(count: int, payload: Iterable[int]) -> dict:
    return {
        "num_blocks": count,
        "media_type": "application/tar+gzip",
        "encoding": "raw",
        "payload": list(payload),
    }


def unpack(found: dict) -> list[tuple[str, bytes]]:
    exact(found, {"num_blocks", "media_type", "encoding", "payload"})
    if (found["media_type"], found["encoding"]) != ("application/tar+gzip", "raw"):
        raise Complaint("another media type or encoding")
    if not isinstance(found["payload"], list):
        raise Complaint("a payload that is no list of integers")
    with tarfile.open(fileobj=io.BytesIO(bytes(found["payload"])), mode="r:gz") as tar:
        entries = [(entry.name, tar.extractfile(entry).read()) for entry in tar]
    if len(entries) != found["num_blocks"]:
        raise Complaint("another number of blocks")
    return entries


def exact(message: dict, fields: Collection[str], may: Collection[str] = ()) -> None:
    """All fields that a message has to have; unknown ones are ignored, as the reference does."""
    if missing := {*fields} - message.keys() - {*may}:
        raise Complaint(f"without {missing}: {str(message)[:200]}")


def objects_of(data: bytes) -> list[tuple[str, str, int]]:
    event = decode_block(data).event
    if not isinstance(event, AddData | ExecuteTransform):
        return []
    found = []
    if event.new_data:
        found.append(("data", str(event.new_data.physical_hash), event.new_data.size))
    if event.new_checkpoint:
        made = event.new_checkpoint
        found.append(("checkpoints", str(made.physical_hash), made.size))
    return found


def plan_of(blocks: list[tuple[str, bytes]]) -> dict:
    objects = [each for _, data in blocks for each in objects_of(data)]
    return {
        "num_blocks": len(blocks),
        "num_objects": len(objects),
        "num_records": 0,
        "bytes_in_raw_blocks": sum(len(data) for _, data in blocks),
        "bytes_in_raw_objects": sum(size for _, _, size in objects),
    }


def reference(kind: str, name: str, size: int) -> dict:
    kinds = {"data": "DataSlice", "checkpoints": "Checkpoint"}
    return {"object_type": kinds[kind], "physical_hash": name, "size": size}


def folder_of(found: dict) -> str:
    exact(found, {"object_type", "physical_hash", "size"})
    return {"DataSlice": "data", "Checkpoint": "checkpoints"}[found["object_type"]]


@dataclass
class Chain:
    """A dataset in memory: blocks oldest first, and objects by folder and hash."""

    blocks: list[tuple[str, bytes]] = field(default_factory=list)
    objects: dict[tuple[str, str], bytes] = field(default_factory=dict)

    @property
    def head(self) -> str | None:
        return self.blocks[-1][0] if self.blocks else None

    def behind(self, name: str | None) -> list[tuple[str, bytes]] | None:
        """The blocks behind one; `None` when that is not in the history."""
        names = [each for each, _ in self.blocks]
        if name is None:
            return self.blocks
        return self.blocks[names.index(name) + 1 :] if name in names else None


# --- The server ---


@dataclass
class StrictServer:
    """A server with datasets by path, such as `net.example.a` or `account/net.example.a`.

    `fault` is asked before each message that is sent, with its number in the dialogue; what it
    raises ends the dialogue: `Gone` closes with that code and reason (1006: without a word).
    """

    datasets: dict[str, Chain] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=set)
    multi_tenant: bool = False
    account: str = "alice"
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    messages: list[dict] = field(default_factory=list)
    progress_seconds: float = 10.0
    late_progress: bool = False
    bare_replies: bool = False
    ping_during_plan: bool = False
    fault: Callable[[int], None] = lambda number: None
    url_of: Callable[[str], dict] | None = None
    answer: Callable[[str], tuple[int, bytes] | None] = lambda path: None
    port: int = 0

    def url(self, path: str = "") -> str:
        return f"odf+http://127.0.0.1:{self.port}/{path}"


@contextlib.contextmanager
def serving(server: StrictServer) -> Iterator[StrictServer]:
    http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(server))
    http.daemon_threads = True
    server.port = http.server_port
    threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}).start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()


def _handler(server: StrictServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 60

        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def may(self) -> bool:
            given = self.headers.get("Authorization", "").removeprefix("Bearer ")
            return not server.tokens or given in server.tokens

        def do_GET(self) -> None:
            path = urlsplit(self.path).path.strip("/")
            server.requests.append(f"GET {path}")
            if (given := server.answer(path)) is not None:
                self.answer(*given)
            elif "upgrade" in self.headers.get("Connection", "").lower():
                self.upgrade(path)
            elif path == "info":
                self.answer(200, json.dumps({"isMultiTenant": server.multi_tenant}).encode())
            elif path == "accounts/me" and self.may():
                self.answer(200, json.dumps({"id": "x", "accountName": server.account}).encode())
            else:
                self.file(path)

        def file(self, path: str) -> None:
            dataset, kind, name = (*path.rsplit("/", 2), "", "")[:3]
            chain = server.datasets.get(dataset)
            if chain is None or chain.head is None:
                self.answer(404)
            elif (kind, name) == ("refs", "head"):
                self.answer(200, chain.head.encode())
            elif (data := {**chain.objects}.get((kind, name))) is not None:
                self.answer(200, data)
            else:
                self.answer(404)

        def do_PUT(self) -> None:
            path = urlsplit(self.path).path.strip("/")
            server.requests.append(f"PUT {path}")
            dataset, kind, name = path.rsplit("/", 2)
            if "Content-Length" not in self.headers:
                return self.answer(400)
            data = self.rfile.read(int(self.headers["Content-Length"]))
            if not self.may():
                return self.answer(401)
            if dataset not in server.datasets or sha3(data) != name:
                return self.answer(500)
            server.datasets[dataset].objects[kind, name] = data
            return self.answer(200)

        def upgrade(self, path: str) -> None:
            dataset, _, verb = path.rpartition("/")
            self.close_connection = True
            headers = self.headers
            if headers.get("Sec-WebSocket-Version") != "13" or "Sec-WebSocket-Key" not in headers:
                return self.answer(400)
            if verb == "pull" and dataset not in server.datasets:
                return self.answer(404)
            if not headers.get("x-odf-smtp-version", "").isdigit():
                return self.answer(400, b"Header of type `x-odf-smtp-version` was missing")
            if verb == "push" and not self.may():
                return self.answer(401, b'{"message":"Unauthenticated"}')
            if headers["x-odf-smtp-version"] != "1":
                return self.answer(400, b'{"message":"Incompatible client version"}')
            if "Sec-WebSocket-Protocol" in headers:
                server.complaints.append("it asks for a subprotocol")
            key = hashlib.sha1(headers["Sec-WebSocket-Key"].encode() + GUID).digest()
            self.wfile.write(
                b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                b"Sec-WebSocket-Accept: " + base64.b64encode(key) + b"\r\n\r\n"
            )
            self.wfile.flush()
            frames = Frames(self.rfile.read1, self.wfile.write, masked=False)
            flow = _Flow(server, dataset, frames, f"http://127.0.0.1:{server.port}/{dataset}")
            try:
                flow.pull() if verb == "pull" else flow.push(headers.get("Authorization"))
            except Gone as gone:
                if gone.code not in (1000, 1001, 1005, 1006):
                    frames.close(gone.code, gone.reason)
            except (Complaint, KeyError, ValueError) as complaint:
                server.complaints.append(f"{type(complaint).__name__}: {complaint}")
            except OSError:
                pass
            # It ends the connection at once, as a panic would.
            with contextlib.suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)
            return None

    return Handler


class _Flow:
    """A dialogue, the server's side."""

    def __init__(self, server: StrictServer, dataset: str, frames: Frames, base: str) -> None:
        self.server, self.dataset, self.frames, self.base = server, dataset, frames, base
        self.sent = 0

    def send(self, message: dict) -> None:
        self.server.fault(self.sent)
        self.sent += 1
        self.frames.send(message)

    def receive(self) -> dict:
        message = self.frames.receive()
        self.server.messages.append(message)
        return message

    def url(self, kind: str, name: str, token: str | None = None) -> dict:
        url = f"{self.base}/{kind}/{name}"
        if self.server.url_of is not None:
            return self.server.url_of(url)
        headers = [{"name": "x-odf-smtp-version", "value": "1"}]
        if token:
            headers.append({"name": "authorization", "value": token})
        return {"url": url, "headers": headers, "expires_at": None}

    def pull(self) -> None:
        chain = self.server.datasets[self.dataset]
        asked = self.receive()
        exact(asked, {"begin_after", "stop_at", "force_update_if_diverged"})
        blocks = chain.behind(asked["begin_after"])
        if blocks is None and asked["force_update_if_diverged"]:
            blocks = chain.blocks
        if blocks is None:
            interval = {"head": chain.head, "tail": asked["begin_after"]}
            return self.send({"Err": {"InvalidInterval": interval}})
        if stop := asked["stop_at"]:
            names = [name for name, _ in blocks]
            blocks = blocks[: names.index(stop) + 1]
        if self.server.ping_during_plan:
            self.frames.frame(9, b"are you there")
            opcode = self.frames._exactly(2)[0] & 15
            self.frames._exactly(4 + 13)
            assert opcode == 10
        self.send({"Ok": {"transfer_plan": plan_of(blocks)}})
        self.receive()
        self.send({"blocks": pack(blocks)})
        while True:
            wanted = self.receive()
            exact(wanted, {"object_files"})
            strategies = [
                {
                    "object_file": each,
                    "pull_strategy": "HttpDownload",
                    "download_from": self.url(folder_of(each), each["physical_hash"]),
                }
                for each in wanted["object_files"]
            ]
            self.send({"object_transfer_strategies": strategies})

    def push(self, token: str | None) -> None:
        server = self.server
        asked = self.receive()
        exact(
            asked,
            {"transfer_plan", "force_update_if_diverged"}
            | {"visibility_for_created_dataset", "current_head"},
        )
        exact(asked["transfer_plan"], PLAN)
        chain = server.datasets.get(self.dataset) or Chain()
        if asked["current_head"] != chain.head:
            heads = {"actual_head": asked["current_head"], "expected_head": chain.head}
            self.send({"Err": {"InvalidHead": heads}})
        else:
            self.send({"Ok": {}})
        sent = self.receive()
        exact(sent, {"new_blocks"})
        blocks = unpack(sent["new_blocks"])
        if len(blocks) != asked["transfer_plan"]["num_blocks"]:
            raise Complaint("plan and blocks differ in number")
        self.send({} if server.bare_replies else {"Ok": {}})
        if self.dataset not in server.datasets:
            # The reference creates it with the seed before data comes.
            server.datasets[self.dataset] = chain = Chain(blocks[:1])
            blocks = blocks[1:]
        more = True
        while more:
            more = self.objects(chain, token)
        self.receive()
        self.commit(chain, blocks, asked["force_update_if_diverged"])
        self.send({})

    def objects(self, chain: Chain, token: str | None) -> bool:
        wanted = self.receive()
        exact(wanted, {"object_files", "is_truncated"})
        strategies = []
        for each in wanted["object_files"]:
            kind, name = folder_of(each), each["physical_hash"]
            there = (kind, name) in chain.objects
            strategies.append(
                {
                    "object_file": each,
                    "push_strategy": "SkipUpload" if there else "HttpUpload",
                    "upload_to": None if there else self.url(kind, name, token),
                }
            )
        reply = {"object_transfer_strategies": strategies}
        self.send(reply if self.server.bare_replies else {"Ok": reply})
        done = threading.Event()

        def ask() -> None:
            while not done.wait(self.server.progress_seconds):
                with contextlib.suppress(OSError):
                    self.frames.send({})

        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        while (details := self.receive()["details"]) != "Complete":
            assert isinstance(details["Running"]["uploaded_objects_count"], int)
        done.set()
        asking.join()
        if self.server.late_progress:
            self.frames.send({})
            time.sleep(0.2)
        return bool(wanted["is_truncated"])

    def commit(self, chain: Chain, blocks: list[tuple[str, bytes]], force: bool) -> None:
        parent = decode_block(blocks[0][1]).prev_block_hash if blocks else None
        for name, data in blocks:
            if sha3(data) != name:
                raise Gone(1011, _internal("CompleteRequest"))
        if blocks and not force and (parent and str(parent)) != chain.head:
            raise Gone(1011, _internal("CompleteRequest"))
        if force and parent is None and blocks:
            chain.blocks = []
        chain.blocks += blocks


def _internal(phase: str) -> str:
    error = {"phase": {"Push": phase}, "error_message": "Internal error"}
    return json.dumps({"Err": {"Internal": error}})


# --- The client ---


class StrictClient:
    """A client of the dataset at `http://host:port/path`; it complains of all that is not exact."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self.parts = urlsplit(url.removeprefix("odf+"))
        self.token = token

    def request(
        self, method: str, path: str, body: bytes = b"", **headers: str
    ) -> tuple[int, bytes, dict[str, str]]:
        """A request to a path below the dataset, or to a whole URL."""
        import http.client

        parts = urlsplit(path) if "://" in path else self.parts
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
        mine = self.token and "://" not in path
        own = {"Authorization": f"Bearer {self.token}"} if mine else {}
        target = parts.path if "://" in path else f"{parts.path.rstrip('/')}/{path}"
        connection.request(method, target, body or None, {**own, **headers})
        response = connection.getresponse()
        found = response.status, response.read(), dict(response.getheaders())
        connection.close()
        return found

    @contextlib.contextmanager
    def open(self, verb: str, version: str | None = "1", **more: str) -> Iterator[Frames]:
        """The dialogue; `Complaint` with the status when the server refuses it."""
        with socket.create_connection((self.parts.hostname, self.parts.port), 60) as wire:
            key = base64.b64encode(os.urandom(16)).decode()
            headers = {
                "Host": self.parts.netloc,
                "Connection": "Upgrade",
                "Upgrade": "websocket",
                "Sec-WebSocket-Version": "13",
                "Sec-WebSocket-Key": key,
                **({"x-odf-smtp-version": version} if version else {}),
                **({"Authorization": f"Bearer {self.token}"} if self.token else {}),
                **more,
            }
            lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            path = f"{self.parts.path.rstrip('/')}/{verb}"
            wire.sendall(f"GET {path} HTTP/1.1\r\n{lines}\r\n".encode())
            answer = HTTPResponse(wire)
            answer.begin()
            if answer.status != 101:
                raise Complaint(f"{answer.status} {answer.read().decode()}")
            accept = base64.b64encode(hashlib.sha1(key.encode() + GUID).digest()).decode()
            found = {name.lower(): value for name, value in answer.getheaders()}
            if found["connection"].lower() != "upgrade":
                raise Complaint(f"Connection: {found['connection']}")
            if found["upgrade"].lower() != "websocket" or found["sec-websocket-accept"] != accept:
                raise Complaint("another answer to the handshake")
            offered = {name.lower() for name in more}
            if ({"sec-websocket-protocol", "sec-websocket-extensions"} - offered) & found.keys():
                raise Complaint("a subprotocol or extension that was not asked for")
            yield Frames(wire.recv, wire.sendall, masked=True)

    def head(self) -> str | None:
        status, body, _ = self.request("GET", "refs/head")
        return body.decode() if status == 200 else None

    def pull(self, chain: Chain, *, force: bool = False, objects: bool = True) -> int:
        """Bring a chain forward as the reference does; how many blocks came."""
        with self.open("pull") as frames:
            frames.send(
                {"begin_after": chain.head, "stop_at": None, "force_update_if_diverged": force}
            )
            plan = ok(frames.receive(), {"transfer_plan"})["transfer_plan"]
            exact(plan, PLAN)
            if plan["num_blocks"] == 0:
                frames.close(1000, "Client pull flow succeeded")
                return 0
            frames.send({})
            blocks = unpack(frames.receive()["blocks"])
            wanted = [
                reference(*each)
                for _, data in blocks
                for each in objects_of(data)
                if each[:2] not in chain.objects
            ]
            if wanted and objects:
                frames.send({"object_files": wanted})
                strategies = frames.receive()["object_transfer_strategies"]
                if [each["object_file"] for each in strategies] != wanted:
                    raise Complaint("other objects than were asked for")
                for each in strategies:
                    self.fetch(each, chain)
            frames.close(1000, "Client pull flow succeeded")
        if decode_block(blocks[0][1]).prev_block_hash is None:
            chain.blocks = []
        for name, data in blocks:
            assert sha3(data) == name
        chain.blocks = chain.blocks + blocks
        return len(blocks)

    def fetch(self, strategy: dict, chain: Chain) -> None:
        exact(strategy, {"object_file", "pull_strategy", "download_from"})
        source, file = strategy["download_from"], strategy["object_file"]
        exact(source, {"url", "headers"})
        given = {each["name"]: each["value"] for each in source["headers"]}
        _, body, _ = self.request("GET", source["url"], **given)
        if sha3(body) != file["physical_hash"]:
            raise Complaint("Corrupted")
        chain.objects[folder_of(file), file["physical_hash"]] = body

    def push(
        self,
        chain: Chain,
        *,
        current: str | None = None,
        force: bool = False,
        upload: bool = True,
        cut: int = 99,
    ) -> dict:
        """Push what is behind `current`; the confirmation. `cut`: leave after so many messages."""
        behind = chain.behind(current)
        blocks = chain.blocks if behind is None else behind
        steps = iter(range(100))

        def step() -> None:
            if next(steps) >= cut:
                raise Gone(1006)

        with self.open("push") as frames:
            step()
            frames.send(
                {
                    "current_head": current,
                    "transfer_plan": plan_of(blocks),
                    "force_update_if_diverged": force,
                    "visibility_for_created_dataset": "Private",
                }
            )
            ok(frames.receive())
            step()
            frames.send({"new_blocks": pack(blocks)})
            ok(frames.receive())
            newest_first = [each for _, data in reversed(blocks) for each in objects_of(data)]
            step()
            frames.send(
                {"object_files": [reference(*e) for e in newest_first], "is_truncated": False}
            )
            reply = ok(frames.receive(), {"object_transfer_strategies"})
            for each in reply["object_transfer_strategies"]:
                exact(each, {"object_file", "push_strategy"}, {"upload_to"})
                if each["push_strategy"] == "HttpUpload" and upload:
                    step()
                    self.send_object(each, chain)
            step()
            frames.send({"details": "Complete"})
            step()
            frames.send({})
            confirmed = frames.receive()
            frames.close(1000, "Client push flow succeeded")
            return confirmed

    def send_object(self, strategy: dict, chain: Chain) -> None:
        target, file = strategy["upload_to"], strategy["object_file"]
        data = chain.objects[folder_of(file), file["physical_hash"]]
        given = {each["name"]: each["value"] for each in target["headers"]}
        given["content-type"] = "application/octet-stream"
        status, body, _ = self.request("PUT", target["url"], data, **given)
        if not 200 <= status < 300:
            raise Complaint(f"PUT {status} {body.decode()}")


def ok(reply: dict, fields: Collection[str] = ()) -> dict:
    if set(reply) != {"Ok"}:
        raise Complaint(json.dumps(reply))
    exact(reply["Ok"], fields)
    return reply["Ok"]
