"""Public keys and signatures: section "Signatures" of docs/format.md."""

import der
import ecdsa
import openssl
from shapes import require
from sigma import ORDER

_ED25519_PREFIX = bytes.fromhex("302a300506032b6570032100")
_MLDSA65_PREFIX = bytes.fromhex("308207b2300b0609608648016503040312038207a100")
_RSA = "1.2.840.113549.1.1.1"
_MLDSA65_SIZE = 1952


class Unsupported(Exception):
    """Something that this verifier cannot check, though the format has it."""


def check_key(algorithm, spki):
    """Refuses a public key that is not of the algorithm, or is encoded in another way than the one."""
    {"RS256": _check_rsa, "ES256": _check_p256, "Ed25519": _check_ed25519, "ML-DSA-65": _check_mldsa}[algorithm](spki)


def _check_rsa(spki):
    outer = der.Fields(der.read(spki))
    kind, bits = der.Fields(outer.next()), outer.next(der.BIT_STRING)
    outer.end()
    require(kind.next().oid() == _RSA, "not an RSA key")
    kind.next(der.NULL)
    kind.end()
    require(bits.content[:1] == b"\0", "bits that are not used")
    numbers = der.Fields(der.read(bits.content[1:]))
    modulus, exponent = numbers.next().integer(), numbers.next().integer()
    numbers.end()
    require(modulus > 0 and 2048 <= modulus.bit_length() <= 8192, "the modulus has not 2048 to 8192 bits")
    require(exponent >= 3 and exponent % 2 == 1, "no exponent of an RSA key")


def _check_p256(spki):
    require(ecdsa.point(spki) is not None, "not a P-256 key")


def _check_ed25519(spki):
    require(spki.startswith(_ED25519_PREFIX) and len(spki) == 44, "not an Ed25519 key")
    require(not _is_small(spki[12:]), "a key of small order, or none")


def _check_mldsa(spki):
    key = spki[len(_MLDSA65_PREFIX) :]
    require(spki.startswith(_MLDSA65_PREFIX) and len(key) == _MLDSA65_SIZE, "not an ML-DSA-65 key")
    require(any(key[32:]), "t1 is zero throughout")


_P = 2**255 - 19
_D = -121665 * pow(121666, -1, _P) % _P


def _is_small(encoded):
    """Whether an Ed25519 key is no point (RFC 8032, section 5.1.3) or of an order that divides 8."""
    number = int.from_bytes(encoded, "little")
    odd, y = number >> 255, number & (2**255 - 1)
    if y >= _P:
        return True
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P:
        x = x * pow(2, (_P - 1) // 4, _P) % _P
    if (x * x - square) % _P or (x == 0 and odd):
        return True
    for _ in range(3):
        x, y = _doubled(x, y)
    return (x, y) == (0, 1)


def _doubled(x, y):
    product = _D * x * x * y * y % _P
    return (2 * x * y * pow(1 + product, -1, _P) % _P, (y * y + x * x) * pow(1 - product, -1, _P) % _P)


def is_valid(algorithm, spki, message, signature):
    """Whether a signature is the key's over the message, in the one encoding that is allowed."""
    if algorithm == "RS256":
        return openssl.verify_digest(spki, message, signature)
    if algorithm == "ES256":
        return 0 < ecdsa.numbers(signature)[1] <= (ORDER - 1) // 2 and openssl.verify_digest(spki, message, signature)
    if algorithm == "Ed25519":
        return len(signature) == 64 and openssl.verify_ed25519(spki, message, signature)
    raise Unsupported("ML-DSA-65 needs OpenSSL 3.5")
