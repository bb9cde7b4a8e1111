"""Files that ship with odfbuild."""

from __future__ import annotations

from pathlib import Path


def template_text(name: str) -> str:
    """Text of a file of `templates/`."""
    return (_folder("templates") / name).read_text(encoding="utf-8")


def schema_text(name: str) -> str:
    """Text of a file of `schemas/`."""
    return (_folder("schemas") / name).read_text(encoding="utf-8")


def error_texts() -> str:
    """What the codes of errors mean, as YAML."""
    [file] = (Path(__file__).resolve().parent.parent / "report").glob("error_codes.yaml*")
    return _unpacked(file)[1].decode()


def site_libraries() -> dict[str, bytes]:
    """Scripts that pages use, by file name; empty where odfbuild was built without them."""
    folder = _folder("vendored")
    if not (folder / "LICENSES.txt").is_file():  # it is written last
        return {}
    return dict(map(_unpacked, sorted(folder.iterdir())))


def _unpacked(file: Path) -> tuple[str, bytes]:
    """Name and bytes of a file that a wheel may have compressed."""
    import gzip

    data = file.read_bytes()
    return (file.stem, gzip.decompress(data)) if file.suffix == ".gz" else (file.name, data)


def _folder(name: str) -> Path:
    package = Path(__file__).resolve().parent.parent
    installed = package / "_resources" / name
    return installed if installed.is_dir() else package.parent / name
