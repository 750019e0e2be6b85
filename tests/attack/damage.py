"""What may happen to the files of a database or an index: ways to damage them."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from ngsgpu.deplete import index as hosts
from ngsgpu.io.output.manifest import sealed

_STRANGE: Final[tuple[Any, ...]] = (
    None, True, -1, 0, 1, 1.5, 10**9, 2**63, 2**70, "", "x", "..", "a/b", "\0", "\ud800", [], {},
    [[]], {"": None}, float("nan"),
)  # fmt: skip


def _byte(path: Path, source: random.Random) -> None:
    data = bytearray(path.read_bytes() or b"\0")
    data[source.randrange(len(data))] ^= source.randrange(1, 256)
    path.write_bytes(data)


def _bits(path: Path, source: random.Random) -> None:
    data = bytearray(path.read_bytes() or b"\0")
    for _ in range(source.randint(2, 40)):
        data[source.randrange(len(data))] ^= 1 << source.randrange(8)
    path.write_bytes(data)


def _cut(path: Path, source: random.Random) -> None:
    os.truncate(path, source.randrange(max(1, path.stat().st_size)))


def _longer(path: Path, source: random.Random) -> None:
    with path.open("ab") as file:
        file.write(bytes(source.choices(range(256), k=source.choice((1, 8, 64, 4096)))))


def _zeros(path: Path, source: random.Random) -> None:
    data = bytearray(path.read_bytes())
    begin = source.randrange(max(1, len(data)))
    end = min(len(data), begin + source.choice((4, 64, 4096, 1 << 20)))
    data[begin:end] = bytes(end - begin)
    path.write_bytes(data)


def _folder(path: Path, source: random.Random) -> None:
    path.unlink()
    path.mkdir()
    if source.random() < 0.5:
        (path / "file").write_text("x")


def _dangling(path: Path, source: random.Random) -> None:
    path.unlink()
    path.symlink_to(source.choice(("nowhere", "/nowhere/at/all", "")) or "no/where")


def _looping(path: Path, source: random.Random) -> None:
    path.unlink()
    path.symlink_to(source.choice((path.name, f"./{path.name}/{path.name}")))


def _pipe(path: Path, source: random.Random) -> None:
    path.unlink()
    os.mkfifo(path)


def _gone(path: Path, source: random.Random) -> None:
    path.unlink()


def _nested(path: Path, source: random.Random) -> None:
    deep = source.choice((1000, 3000, 100_000))
    begin, end = source.choice((("[", "]"), ('{"a":', "}")))
    nest = begin * deep + ("0" if begin != "[" else "") + end * deep
    text = path.read_bytes().rstrip(b" \n")
    if source.random() < 0.5 and text.startswith(b"{") and path.suffix != ".idx":
        nest = text[:-1].decode(errors="replace") + f', "more": {nest}}}\n'
    path.write_text(nest[: 1 << 24])


def forge(path: Path, source: random.Random) -> None:
    """Change the type or value of a field of a manifest, and make its checksum right again."""
    content = path.read_bytes()
    table = content[hosts.HEADER_BYTES :] if path.suffix == ".idx" else b""
    values = json.loads(content[: len(content) - len(table)])
    for _ in range(source.choice((1, 1, 1, 2))):
        at: Any = values
        while True:
            key = source.choice(list(at) if isinstance(at, dict) else range(len(at)))
            inner = at[key]
            if isinstance(inner, dict | list) and len(inner) > 0 and source.random() < 0.7:
                at = inner
                continue
            break
        if source.random() < 0.15:
            del at[key]
            if not values:
                break
        else:
            at[key] = source.choice(_STRANGE)
    if path.suffix == ".idx":
        path.write_bytes(hosts._sealed(values)[: hosts.HEADER_BYTES] + table)
    else:
        path.write_text(sealed(values))


Damage = Callable[[Path, random.Random], None]

BYTES: Final[dict[str, Damage]] = {
    "a byte": _byte, "bits": _bits, "cut": _cut, "longer": _longer, "zeros": _zeros,
}  # fmt: skip
PLACES: Final[dict[str, Damage]] = {
    "a folder": _folder, "a dangling link": _dangling, "a looping link": _looping, "a pipe": _pipe,
    "gone": _gone,
}  # fmt: skip
NESTED: Final = _nested


def swap(one: Path, other: Path) -> None:
    """Give two files each other's content."""
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)
