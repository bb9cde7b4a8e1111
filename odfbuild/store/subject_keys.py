"""Keys of subjects: 64 random bytes for each person whose values are encrypted in slices.

They lie at a place of their own, outside of Git and of the data, named by a keyed hash of the
subject, each encrypted by the key of the store. That one is in the store's header, encrypted by
the wrapping key, so that a new wrapping key costs one write. Entries are in 256 files, which are
replaced by compare-and-swap: two writers end with the same key for one subject.
A key that is destroyed leaves a tombstone. The statements in the chains name the destroyed keys,
too, so that an older copy of the store brings none of them back.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from odfbuild.errors import PersonalDataError
from odfbuild.extras import require_cryptography
from odfbuild.store.place import Place
from odfbuild.store.remote import is_failure, why
from odfbuild.store.storage import open_place
from odfbuild.store.wrapping_keys import NotItsKey, Wrapping

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESSIV

T = TypeVar("T")
Entries = dict[bytes, bytes]
"""Encrypted keys by names of subjects; empty: the key was destroyed."""

KEY_BYTES = 64
NAME_BYTES = 32

_HEADER = "header.json"
_KIND = "SubjectKeys"
_VERSION = 1
_WRAPPED_BYTES = KEY_BYTES + 16
"""AES-SIV puts 16 bytes before what it encrypts."""
_ENTRY_BYTES = NAME_BYTES + _WRAPPED_BYTES
_DESTROYED = bytes(_WRAPPED_BYTES)
_MAGIC = b"odfbuild keys 1\n"
_MOST_BYTES = 1 << 30
"""Of one of the files: nine million subjects, 2,400 million in all of them."""
_AT_ONCE = 16
"""Files that are read or written at the same time."""


class SubjectKeys(Protocol):
    """Keys by subjects. Methods may be called from several threads and processes at once."""

    def keys(self, subjects: Collection[str]) -> dict[str, bytes]:
        """Keys of 64 bytes; subjects that were never seen, or are erased, are absent."""
        ...

    def ensure(self, subjects: Collection[str]) -> dict[str, bytes]:
        """Keys of 64 bytes; makes and stores missing ones. Erased subjects stay absent."""
        ...

    def erased(self, subjects: Collection[str]) -> frozenset[str]:
        """Those whose keys were destroyed."""
        ...

    def destroy(self, subjects: Collection[str]) -> int:
        """Destroy keys for good, also of subjects that never had one; how many were there."""
        ...


class KeyStore:
    """The keys at `address` (a folder, relative to `root`, or `s3:`, `gs:`, `az:`, `abfs:`).

    `wrapping` encrypts the key of the store. `stated` gives the names of subjects that statements
    say were erased; it is asked once. `PersonalDataError` E1621 where the place cannot be used,
    E1622 for a wrong or missing wrapping key, E1623 for damaged files.
    """

    def __init__(
        self,
        address: str,
        wrapping: Wrapping,
        root: Path,
        stated: Callable[[], Collection[bytes]] = tuple,
    ) -> None:
        self.address = address
        self.wrapping = wrapping
        self._root = root
        self._stated = stated
        self._place: Place | None = None
        self._secret: bytes | None = None
        self._erased: frozenset[bytes] | None = None

    def __repr__(self) -> str:
        return f"KeyStore({self.address!r})"

    def keys(self, subjects: Collection[str]) -> dict[str, bytes]:
        """Keys of subjects that have one."""
        if not subjects or self._opened() is None:
            return {}
        return self._of(subjects, self._read)

    def ensure(self, subjects: Collection[str]) -> dict[str, bytes]:
        """Keys of subjects, made where there is none."""
        if not subjects:
            return {}
        self._open_or_create()

        def add(shard: str, names: Collection[bytes]) -> Entries:
            new: Entries = {}

            def added(known: Entries) -> Entries:
                missing = [each for each in names if each not in known]
                for each in missing:
                    new.setdefault(each, self._wrap(each, secrets.token_bytes(KEY_BYTES)))
                return {**known, **{each: new[each] for each in missing}}

            return self._change(shard, added)

        return self._of(subjects, add)

    def erased(self, subjects: Collection[str]) -> frozenset[str]:
        """Subjects whose keys were destroyed."""
        if not subjects or self._opened() is None:
            return frozenset()
        named = self._named(subjects)
        known = self._each_shard(named, self._read)
        stated = self._stated_names
        return frozenset(
            subject for name, subject in named.items() if name in stated or known.get(name) == b""
        )

    def destroy(self, subjects: Collection[str]) -> int:
        """Put tombstones in place of keys; nothing that was written before them is left."""
        if not subjects:
            return 0
        self._open_or_create()
        found: set[bytes] = set()

        def bury(shard: str, names: Collection[bytes]) -> Entries:
            def buried(known: Entries) -> Entries:
                found.update(each for each in names if known.get(each))
                return {**known, **dict.fromkeys(names, b"")}

            return self._change(shard, buried)

        self._each_shard(self._named(subjects), bury)
        # Files of writers that were killed may hold what was destroyed.
        self._ask(lambda place: place.tidy_now())
        return len(found)

    def name_of(self, subject: str) -> bytes:
        """The keyed hash (32 bytes) by which the store and statements call a subject."""
        self._open_or_create()
        return self._name(subject)

    def names_of(self, subjects: Iterable[str]) -> dict[str, bytes]:
        """What `name_of` says of each of them; empty where no store was made yet."""
        if self._opened() is None:
            return {}
        return {each: self._name(each) for each in subjects}

    def rotate(self, new: Wrapping) -> None:
        """Encrypt the key of the store by another wrapping key; `wrapping` opens it no more."""
        secret, text = self._open_or_create(), self._header()
        if not self._ask(_swap(_HEADER, text, _header(new, secret))):
            raise PersonalDataError(
                f"the header of the keys of subjects in {self.address} was just changed",
                code="E1621",
                help="look which wrapping key holds now, and run the command again",
            )
        self._ask(lambda place: place.tidy_now())
        self.wrapping = new

    # --- The header ---

    def _header(self) -> bytes | None:
        return self._ask(lambda place: place.read(_HEADER, 1 << 16))

    def _opened(self) -> bytes | None:
        """The key of the store, 96 bytes; `None` where there is no store yet."""
        if self._secret is None and (text := self._header()) is not None:
            require_cryptography("keys of subjects")
            self._secret = self._open(text)
        return self._secret

    def _open_or_create(self) -> bytes:
        found = self._opened()
        if found is None:
            require_cryptography("keys of subjects")
            self.wrapping.prepare()
            made = _header(self.wrapping, secrets.token_bytes(NAME_BYTES + KEY_BYTES))
            self._ask(lambda place: place.swap(_HEADER, None, made))
            found = self._opened()
            assert found is not None  # nobody removes it
        return found

    def _open(self, text: bytes) -> bytes:
        try:
            document = json.loads(text)
            if (document["kind"], document["version"]) != (_KIND, _VERSION):
                raise self._damaged(_HEADER, f"is no {_KIND} of version {_VERSION}")
            wrapped, by = base64.b64decode(document["key"], validate=True), str(document["by"])
        except (ValueError, KeyError, TypeError):
            raise self._damaged(_HEADER, "has not the fields of one") from None
        try:
            secret = self.wrapping.unwrap(wrapped)
        except NotItsKey as error:
            raise PersonalDataError(
                f"the wrapping key does not open the keys of subjects in {self.address}: {error}",
                code="E1622",
                notes=(f"encrypted by: {by}", f"tried:        {self.wrapping.address}"),
                help="set `personal.wrapping` of the machine's configuration to the key that "
                "encrypted them; after `odfbuild key rotate` that is the new one",
            ) from None
        if len(secret) != NAME_BYTES + KEY_BYTES:
            raise self._damaged(_HEADER, "holds a key of another length")
        return secret

    @property
    def _stated_names(self) -> frozenset[bytes]:
        if self._erased is None:
            self._erased = frozenset(self._stated())
        return self._erased

    # --- Entries ---

    def _name(self, subject: str) -> bytes:
        assert self._secret is not None
        return hmac.digest(self._secret[:NAME_BYTES], subject.encode(), hashlib.sha256)

    def _named(self, subjects: Collection[str]) -> dict[bytes, str]:
        return {self._name(each): each for each in subjects}

    def _of(
        self, subjects: Collection[str], entries: Callable[[str, Collection[bytes]], Entries]
    ) -> dict[str, bytes]:
        named = self._named(subjects)
        stated = self._stated_names
        asked = {name: each for name, each in named.items() if name not in stated}
        found = self._each_shard(asked, entries)
        return {
            subject: self._unwrap(name, found[name])
            for name, subject in asked.items()
            if found.get(name)
        }

    def _each_shard(
        self, names: Collection[bytes], entries: Callable[[str, Collection[bytes]], Entries]
    ) -> Entries:
        """What `entries` gives of each file that may have one of `names`."""
        shards: dict[str, list[bytes]] = {}
        for each in names:
            shards.setdefault(f"{each[0]:02x}", []).append(each)
        found: Entries = {}
        with ThreadPoolExecutor(min(_AT_ONCE, len(shards) or 1)) as threads:
            parts = threads.map(entries, shards, shards.values())
            for asked, part in zip(shards.values(), parts, strict=True):
                found.update((name, part[name]) for name in asked if name in part)
        return found

    def _read(self, shard: str, _: Collection[bytes] = ()) -> Entries:
        return self._decode(shard, self._bytes(shard))

    def _bytes(self, shard: str) -> bytes | None:
        return self._ask(lambda place: place.read(f"keys/{shard}", _MOST_BYTES))

    def _change(self, shard: str, change: Callable[[Entries], Entries]) -> Entries:
        """Replace the entries of a file by what `change` makes of them; returns that."""
        while True:
            text = self._bytes(shard)
            known = self._decode(shard, text)
            entries = change(known)
            if entries == known:
                return known
            if self._ask(_swap(f"keys/{shard}", text, _encode(entries))):
                return entries

    def _decode(self, shard: str, text: bytes | None) -> Entries:
        if text is None:
            return {}
        body = memoryview(text)[len(_MAGIC) :]
        if not text.startswith(_MAGIC) or len(body) % _ENTRY_BYTES:
            raise self._damaged(f"keys/{shard}", "is not a file of keys, or was cut off")
        found: Entries = {}
        for at in range(0, len(body), _ENTRY_BYTES):
            wrapped = bytes(body[at + NAME_BYTES : at + _ENTRY_BYTES])
            found[bytes(body[at : at + NAME_BYTES])] = b"" if wrapped == _DESTROYED else wrapped
        return found

    @cached_property
    def _cipher(self) -> AESSIV:
        from cryptography.hazmat.primitives.ciphers.aead import AESSIV

        return AESSIV(self._open_or_create()[NAME_BYTES:])

    def _wrap(self, name: bytes, key: bytes) -> bytes:
        return self._cipher.encrypt(key, [name])

    def _unwrap(self, name: bytes, wrapped: bytes) -> bytes:
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher.decrypt(wrapped, [name])
        except InvalidTag:
            raise self._damaged(f"keys/{name[0]:02x}", "holds an entry with other bytes") from None

    def _damaged(self, name: str, what: str) -> PersonalDataError:
        return PersonalDataError(
            f"the keys of subjects in {self.address} are damaged: {name} {what}",
            code="E1623",
            help="restore that file from a backup; keys that were destroyed since then stay away",
        )

    def _ask(self, question: Callable[[Place], T]) -> T:
        try:
            if self._place is None:
                self._place = open_place(self.address, self._root)
            return question(self._place)
        except Exception as error:
            if not is_failure(error):
                raise
            raise PersonalDataError(
                f"the keys of subjects in {self.address} cannot be used: {why(error)}",
                code="E1621",
                help="check `personal.keys` of the machine's configuration, and whether you may "
                "read and write there",
            ) from None


def _swap(name: str, old: bytes | None, new: bytes) -> Callable[[Place], bool]:
    return lambda place: place.swap(name, old, new)


def _header(wrapping: Wrapping, secret: bytes) -> bytes:
    document = {
        "kind": _KIND,
        "version": _VERSION,
        "by": wrapping.address,
        "key": base64.b64encode(wrapping.wrap(secret)).decode(),
    }
    return json.dumps(document, indent=2).encode() + b"\n"


def _encode(entries: Mapping[bytes, bytes]) -> bytes:
    parts = (name + (entries[name] or _DESTROYED) for name in sorted(entries))
    return _MAGIC + b"".join(parts)
