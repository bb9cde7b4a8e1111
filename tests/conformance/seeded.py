"""Identities that the reference's tests make from text: generator output, not keys."""

import struct

_MASK = (1 << 64) - 1


def seeded_key(seed: bytes) -> bytes:
    """32 bytes of xoshiro256++ whose state is the seed, padded with zeros."""
    if len(seed) > 32:
        raise ValueError("a seed has at most 32 bytes")
    state = list(struct.unpack("<4Q", seed.ljust(32, b"\0")))
    if not any(state):
        state = _splitmix()
    out = b""
    for _ in range(4):
        out += struct.pack("<Q", (_rotate((state[0] + state[3]) & _MASK, 23) + state[0]) & _MASK)
        _advance(state)
    return out


def _advance(state: list[int]) -> None:
    shifted = (state[1] << 17) & _MASK
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] ^= shifted
    state[3] = _rotate(state[3], 45)


def _splitmix() -> list[int]:
    found, at = [], 0
    for _ in range(4):
        at = (at + 0x9E3779B97F4A7C15) & _MASK
        z = at
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        found.append(z ^ (z >> 31))
    return found


def _rotate(value: int, by: int) -> int:
    return ((value << by) | (value >> (64 - by))) & _MASK
