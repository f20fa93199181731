"""FNV-1a with 64 bits: the hash that spreads names, the same in every language."""

OFFSET = 0xCBF29CE484222325
PRIME = 0x100000001B3
_MASK = (1 << 64) - 1


def fnv1a64(data: bytes) -> int:
    value = OFFSET
    for byte in data:
        value = (value ^ byte) * PRIME & _MASK
    return value
