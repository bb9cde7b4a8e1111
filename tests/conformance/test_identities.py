"""DIDs, multihashes, names, references and patterns, against the vectors."""

import hashlib
from typing import Any

import pytest
from multiformats import multibase

from odfbuild.odf import references as r
from odfbuild.odf.identity import DatasetAlias, DatasetId, is_name, parse_ref
from odfbuild.odf.multibase import decode_multibase
from odfbuild.odf.multihash import ARROW0_SHA3_256, SHA2_256, SHA3_256, Multihash
from tests.conformance import reference_forms as forms
from tests.conformance.seeded import seeded_key
from tests.conformance.vectors import cases

CODES = {"sha2-256": SHA2_256, "sha3-256": SHA3_256, "arrow0-sha3-256": ARROW0_SHA3_256}


@pytest.mark.parametrize("case", cases("identities"))
def test_identities_follow_the_specification(case: dict[str, Any]) -> None:
    CHECKS[case["kind"]](case)


def _outcome(parse: Any, text: str) -> dict[str, Any]:
    try:
        return {"ok": True, "value": parse(text)}
    except ValueError:
        return {"ok": False}


def _parsed(parse: Any) -> Any:
    def check(case: dict[str, Any]) -> None:
        assert _outcome(lambda text: _describe(parse(text)), case["input"]) == case["expected"]

    return check


def _describe(value: Any, alias: str = "alias") -> Any:
    match value:
        case DatasetId():
            return {"kind": "id", "id": str(value)}
        case DatasetAlias():
            return {"kind": alias, "account": value.account, "dataset": value.name}
        case r.RemoteId():
            return {"kind": "id", "repo": value.repo, "id": str(value.id)}
        case r.Url():
            return {"kind": "url", "url": value.text}
        case r.RemoteAlias():
            kind = "remote_alias" if alias == "local_alias" else "alias"
            found = value.alias
            return {
                "kind": kind,
                "repo": value.repo,
                "account": found.account,
                "dataset": found.name,
            }
        case r.AmbiguousAlias():
            return {"kind": "ambiguous_alias", "prefix": value.prefix, "dataset": value.name}
        case forms.Pattern():
            kind = "pattern_local" if alias == "local_alias" else "pattern"
            found_pattern = {"kind": kind, "dataset_pattern": value.name}
            if alias != "local_alias":
                found_pattern["account"] = value.account
            return found_pattern
        case forms.AmbiguousPattern():
            return {
                "kind": "pattern_ambiguous",
                "prefix": value.prefix,
                "dataset_pattern": value.pattern,
            }
        case forms.RemotePattern():
            return {
                "kind": "pattern_remote",
                "repo": value.repo,
                "account": value.account,
                "dataset_pattern": value.pattern,
            }
        case str():
            return {"kind": "repository", "repo": value}
        case forms.WalletId():
            return {
                "method": "pkh",
                "canonical": str(value),
                "namespace": value.namespace,
                "reference": value.reference,
                "address": value.address,
            }
    raise AssertionError(f"no description of {value!r}")


def _any(parse: Any) -> Any:
    def describe(text: str) -> Any:
        value = parse(text)
        found = _describe(value, "local_alias")
        return (
            found
            if "pattern" in found["kind"] or parse is r.parse_any_ref
            else {"kind": "ref", "ref": found}
        )

    def check(case: dict[str, Any]) -> None:
        assert _outcome(describe, case["input"]) == case["expected"]

    return check


def _ref_pattern(case: dict[str, Any]) -> None:
    def describe(text: str) -> Any:
        value = forms.parse_ref_pattern(text)
        found = _describe(value)
        return found if isinstance(value, forms.Pattern) else {"kind": "ref", "ref": found}

    assert _outcome(describe, case["input"]) == case["expected"]


def _plain(parse: Any, *keys: str) -> Any:
    def check(case: dict[str, Any]) -> None:
        def describe(text: str) -> Any:
            found = _describe(parse(text))
            return {key: found[key] for key in keys}

        assert _outcome(describe, case["input"]) == case["expected"]

    return check


def _name(case: dict[str, Any]) -> None:
    assert is_name(case["input"]) == case["expected"]["ok"]


def _account(case: dict[str, Any]) -> None:
    def describe(text: str) -> Any:
        value = forms.parse_account_id(text)
        if isinstance(value, DatasetId):
            return {"method": "odf", "canonical": str(value)}
        return _describe(value)

    assert _outcome(describe, case["input"]) == case["expected"]


def _did(case: dict[str, Any]) -> None:
    text, expected = case["input"], case["expected"]
    try:
        if text.startswith("did:key:"):
            found = DatasetId.from_bytes(decode_multibase(text.removeprefix("did:key:")))
        else:
            found = DatasetId.parse(text)
    except ValueError:
        assert not expected["ok"]
        return
    assert expected["ok"]
    known = {
        "ok": True,
        "key_type": "ed25519-pub",
        "canonical_did_odf": str(found),
        "canonical_did_key": found.did_key,
        "did_key_base16": f"did:key:{found.multibase}",
        "bytes_hex": found.binary.hex(),
    }
    assert {key: known[key] for key in expected} == expected


def _seeded(case: dict[str, Any]) -> None:
    found = DatasetId(seeded_key(case["seed_utf8"].encode()))
    assert case["expected"] == {
        "public_key_hex": found.key.hex(),
        "did_bytes_hex": found.binary.hex(),
        "did_odf": str(found),
        "did_key": found.did_key,
    }


def _algorithm(case: dict[str, Any]) -> None:
    for key, expected in case["expected"].items():
        seed = key.removeprefix("first_outputs_hex_for_seed_")
        assert seeded_key(seed.encode()).hex().startswith(expected)


def _hash_text(case: dict[str, Any]) -> None:
    function = hashlib.sha256 if case["codec"] == "sha2-256" else hashlib.sha3_256
    digest = function(case["preimage_utf8"].encode())
    found = Multihash.of(CODES[case["codec"]], digest.digest())
    assert str(found) == case["expected"]["base16"]
    assert Multihash.parse(str(found)) == found


def _hash_parse(case: dict[str, Any]) -> None:
    expected = case["expected"]
    try:
        found = Multihash.parse(case["input"])
    except ValueError:
        assert not expected["ok"]
        return
    known = {
        "ok": True,
        "codec": {code: name for name, code in CODES.items()}[found.code],
        "code": hex(found.code),
        "digest_hex": found.digest.hex(),
        "base16": str(found),
        "base58btc": multibase.encode(found.binary, "base58btc"),
    }
    assert {key: known[key] for key in expected} == expected


def _codecs(case: dict[str, Any]) -> None:
    from odfbuild.odf.flatbuffers.form import MANIFEST_KIND

    known = {name: hex(code) for name, code in CODES.items()}
    known |= {"ed25519-pub": "0xed", "odf-metadata-block": hex(MANIFEST_KIND)}
    known |= {"odf-dataset-snapshot": "0x400001"}
    assert {key: known[key] for key in case["expected"]} == case["expected"]


def _equality(parse: Any) -> Any:
    def check(case: dict[str, Any]) -> None:
        equal = parse(case["left"]) == parse(case["right"])
        assert equal == case["expected"]["equal"]

    return check


def _resolve(case: dict[str, Any]) -> None:
    ref = r.parse_any_ref(case["input"])
    assert isinstance(ref, r.AmbiguousAlias)
    found = ref.resolve(frozenset(case["known_repos"]))
    side = "local" if isinstance(found, DatasetAlias) else "remote"
    assert {side: _describe(found)} == case["expected"]


def _matches(case: dict[str, Any]) -> None:
    handle = case["handle"]
    alias = DatasetAlias(handle["dataset"], handle["account"])
    pattern = forms.parse_ref_pattern(case["pattern"])
    found = forms.ref_matches(pattern, DatasetId.parse(handle["id"]), alias)
    assert found == case["expected"]["matches"]


def _name_pattern(case: dict[str, Any]) -> None:
    found = forms.match_name_pattern(case["input"])
    expected = case["expected"]
    assert (found and {"matched": found[0], "rest": found[1]}) == expected


CHECKS = {
    "seeded_did": _seeded,
    "algorithm_note": _algorithm,
    "did_parse": _did,
    "did_equality": _equality(DatasetId.parse),
    "multihash_format": _hash_text,
    "multihash_parse": _hash_parse,
    "codec_table": _codecs,
    "dataset_name": _name,
    "dataset_alias": _plain(DatasetAlias.parse, "account", "dataset"),
    "dataset_alias_remote": _plain(r.RemoteAlias.parse, "repo", "account", "dataset"),
    "dataset_ref": _parsed(parse_ref),
    "dataset_ref_remote": _parsed(r.parse_remote_ref),
    "dataset_ref_any": _any(r.parse_any_ref),
    "dataset_ref_any_pattern": _any(forms.parse_any_ref_pattern),
    "dataset_ref_pattern": _ref_pattern,
    "resolve_ambiguous": _resolve,
    "alias_equality": _equality(DatasetAlias.parse),
    "alias_remote_equality": _equality(r.RemoteAlias.parse),
    "pattern_match": _matches,
    "name_pattern_match": _name_pattern,
    "push_target": _parsed(forms.parse_push_target),
    "account_id": _account,
}
