"""The hash that seeded partitioners use, in plain Python."""

_WORD = 2**64 - 1


def splitmix64(value):
    """Scramble 64 bits."""
    value = (value + 0x9E3779B97F4A7C15) & _WORD
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    value = (value ^ value >> 27) * 0x94D049BB133111EB & _WORD
    return value ^ value >> 31
