"""From references to addresses: names of repositories, bare addresses, and what is neither."""

from __future__ import annotations

import pytest

from odfbuild.errors import RepositoryError
from odfbuild.exchange.repositories.addresses import find_dataset, find_repository, within
from odfbuild.project.settings.sharing import RepositorySettings

ID = f"did:odf:fed01{'ab' * 32}"
KNOWN = {
    "acme": RepositorySettings(url="https://Data.Example.org/odf/", token="${{ env.ACME }}"),
    "acme-eu": RepositorySettings(url="https://data.example.org/odf/eu", signatures="required"),
    "bucket": RepositorySettings(url="s3://Bucket/prefix//"),
    "shared": RepositorySettings(url="../shared/published"),
}


@pytest.mark.parametrize(
    ("reference", "address", "path", "name"),
    [
        ("acme/prices", "https://data.example.org/odf", "prices", "prices"),
        ("ACME/Prices", "https://data.example.org/odf", "Prices", "Prices"),
        ("acme/account/prices", "https://data.example.org/odf", "account/prices", "prices"),
        ("bucket/prices", "s3://Bucket/prefix", "prices", "prices"),
        ("shared/prices", "../shared/published", "prices", "prices"),
        ("https://x.org/a/prices/", "https://x.org/a/prices", "", "prices"),
        ("https://x.org/", "https://x.org", "", "x.org"),
        ("odf+https://x.org:8080/a/b", "odf+https://x.org:8080/a/b", "", "b"),
        ("s3://bucket/a/prices", "s3://bucket/a/prices", "", "prices"),
        ("file:///srv/prices", "file:///srv/prices", "", "prices"),
        ("./prices", "./prices", "", "prices"),
        ("/srv/prices/", "/srv/prices", "", "prices"),
        ("~/a_b", "~/a_b", "", None),
    ],
)
def test_a_reference_leads_to_an_address(
    reference: str, address: str, path: str, name: str | None
) -> None:
    found = find_dataset(reference, KNOWN)
    assert (found.repository.address, found.path, found.name) == (address, path, name)


def test_an_identity_is_looked_for_in_a_repository() -> None:
    found = find_dataset(f"acme/{ID}", KNOWN)
    assert (str(found.id), found.path, found.name) == (ID, "", None)
    assert found.address == f"https://data.example.org/odf/{ID}"


def test_an_address_below_that_of_a_repository_has_its_token_and_rules() -> None:
    found = find_dataset("https://data.example.org/odf/eu/account/prices", KNOWN)
    assert (found.repository.name, found.path) == ("acme-eu", "account/prices")
    assert found.repository.signatures == "required"
    assert find_dataset("https://data.example.org/odf/prices", KNOWN).repository.token
    assert find_dataset("https://data.example.org/odfs/prices", KNOWN).repository.name is None
    assert find_dataset("http://data.example.org/odf/prices", KNOWN).repository.name is None


def test_a_password_is_no_part_of_the_address() -> None:
    found = find_dataset("https://me:s%40cret@x.org/prices", {})
    assert (found.address, found.repository.user) == ("https://x.org/prices", "me:s%40cret")


@pytest.mark.parametrize("text", ["acme", "Acme", "https://data.example.org/odf"])
def test_a_repository_is_known_by_its_name_or_its_address(text: str) -> None:
    assert find_repository(text, KNOWN).name == "acme"


@pytest.mark.parametrize(
    ("reference", "code", "said"),
    [
        ("acm/prices", "E1003", "no repository 'acm'"),
        ("prices", "E1004", "'prices' is not the reference"),
        (ID, "E1004", "is not the reference"),
        ("acme/../../etc", "E1004", "is not the reference"),
        ("acme/..", "E1004", "is not the reference"),
        ("acme/a/b/c", "E1004", "is not the reference"),
        ("acme/a\\b", "E1004", "is not the reference"),
        ("acme/a%2fb", "E1004", "is not the reference"),
        ("acme/did:odf:f00", "E1004", "is not the reference"),
        ("ftp://x.org/prices", "E1002", "its scheme is 'ftp:'"),
        ("s3:bucket/x", "E1002", "// is missing"),
        ("s3:///x", "E1002", "it names no bucket or host"),
        ("file://host/x", "E1002", "it names a host"),
        ("https://x.org:port/", "E1002", "is not the address of a repository"),
        ("https://x.org/prices?token=secret", "E1002", "it has no '?'"),
        ("https://[x/", "E1002", "is not the address of a repository"),
    ],
)
def test_what_is_no_reference_is_refused_with_a_way_out(
    reference: str, code: str, said: str
) -> None:
    with pytest.raises(RepositoryError) as caught:
        find_dataset(reference, KNOWN)
    assert (caught.value.code, said in str(caught.value)) == (code, True), str(caught.value)
    assert caught.value.help
    assert "secret" not in f"{caught.value}{caught.value.notes}{caught.value.help}"


def test_a_name_that_is_misspelt_is_told_with_what_was_meant() -> None:
    with pytest.raises(RepositoryError) as caught:
        find_repository("bukcet", KNOWN)
    assert caught.value.help == "did you mean 'bucket'?"
    with pytest.raises(RepositoryError) as caught:
        find_repository("published", {})
    assert "./published" in caught.value.help


@pytest.mark.parametrize("alias", ["..", "a/..", "/etc", "a/b/c", "", "a b", "a%2f"])
def test_an_alias_from_elsewhere_never_leads_out_of_a_repository(alias: str) -> None:
    with pytest.raises(RepositoryError) as caught:
        within(find_repository("bucket", KNOWN), alias)
    assert caught.value.code == "E1004"
