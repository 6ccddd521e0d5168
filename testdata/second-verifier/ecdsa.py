"""ECDSA over P-256 with SHA-256 (FIPS 186-5). Most signatures are of this kind, and a process of openssl for each takes longer."""

import functools

import der
from canonical import Refused
from sigma import ORDER, B, G, P, total

_PREFIX = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d03010703420004")


def point(spki):
    """The point of a P-256 key in its one form; None: the key is another, or none."""
    x, y = int.from_bytes(spki[27:59], "big"), int.from_bytes(spki[59:], "big")
    is_one = len(spki) == 91 and spki.startswith(_PREFIX) and x < P and y < P and (y * y - x * x * x + 3 * x - B) % P == 0
    return (x, y) if is_one else None


def numbers(signature):
    """The two numbers of a signature in strict DER; (0, 0), which are none, for anything else."""
    try:
        fields = der.Fields(der.read(signature))
        r, s = fields.next().integer(), fields.next().integer()
        fields.end()
    except Refused:
        return 0, 0
    return (r, s) if 0 < r < ORDER and 0 < s < ORDER else (0, 0)


@functools.lru_cache(1 << 16)
def verify(key, digest, signature):
    """Whether a key, which is a point, signed what has this SHA-256 digest."""
    r, s = numbers(signature)
    if not s:
        return False
    inverse = pow(s, -1, ORDER)
    found = total(((int.from_bytes(digest, "big") * inverse, G), (r * inverse, key)))
    return found is not None and found[0] % ORDER == r
