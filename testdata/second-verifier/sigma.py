"""Proofs of linear relations over P-256, by docs/format.md, "Properties": the compact form of draft-irtf-cfrg-sigma-protocols-03 with
SHAKE128. Only what a verifier needs."""

import functools
import hashlib

from canonical import require

P = 2**256 - 2**224 + 2**192 + 2**96 - 1
B = 0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
G = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)
POINT, SCALAR, RATE = 33, 32, 168


class NoProof(Exception):
    """The bytes prove nothing."""


def prove(holds, reason):
    require(holds, reason, NoProof)


# Points are None for the identity, or (x, y). Sums are taken in projective coordinates, which need one inversion at the end.
_IDENTITY = (0, 1, 0)


def _add(p, q):
    """The sum of any two points, be they the same or the identity (Renes, Costello and Batina, "Complete addition formulas", 2016)."""
    (x1, y1, z1), (x2, y2, z2) = p, q
    xx, yy, zz = x1 * x2 % P, y1 * y2 % P, z1 * z2 % P
    xy, xz, yz = (x1 * y2 + x2 * y1) % P, (x1 * z2 + x2 * z1) % P, (y1 * z2 + y2 * z1) % P
    k, m, n = 3 * (xx - zz), 3 * (B * zz - xz) % P, 3 * (B * xz - xx - 3 * zz) % P
    return (xy * (yy - m) - yz * n) % P, ((yy + m) * (yy - m) + k * n) % P, (yz * (yy + m) + xy * k) % P


@functools.lru_cache(1024)
def _multiples(p):
    """The first 16 multiples of a point, and of its products with 2**64, 2**128 and 2**192: a sum then doubles 64 times instead of 256."""
    tables, p = [], (*p, 1)
    for _ in range(4):
        found = [_IDENTITY]
        for _ in range(15):
            found.append(_add(found[-1], p))
        tables.append(found)
        for _ in range(64):
            p = _add(p, p)
    return tables


@functools.lru_cache(4096)
def total(products):
    """The sum of number times point, of a tuple of both. Files that differ elsewhere ask for the same sums."""
    pairs = []
    for number, p in products:
        if p is not None:
            pairs += [(number % ORDER >> 64 * i, table) for i, table in enumerate(_multiples(p))]
    sum_ = _IDENTITY
    for at in range(60, -1, -4):
        for _ in range(4):
            sum_ = _add(sum_, sum_)
        for number, multiples in pairs:
            sum_ = _add(sum_, multiples[number >> at & 15])
    x, y, z = sum_
    if not z:
        return None
    inverse = pow(z, -1, P)
    return x * inverse % P, y * inverse % P


def point(data):
    """Reads a compressed point."""
    x = int.from_bytes(data[1:], "big")
    prove(len(data) == POINT and data[0] in (2, 3) and x < P, "no compressed point")
    square = (x**3 - 3 * x + B) % P
    y = pow(square, (P + 1) // 4, P)
    prove(y * y % P == square, "no point of the curve")
    return x, y if y % 2 == data[0] % 2 else P - y


def written(p):
    """Writes a point as point reads it."""
    return bytes([2 + p[1] % 2]) + p[0].to_bytes(32, "big")


class Relation:
    """Equations: an image, pairs (factor, point), and terms (scalar, factor, point), which add up to it. Points and scalars are numbers."""

    def __init__(self):
        self.points, self.equations, self.scalars = [G], [], 0

    def point(self, p):
        self.points.append(p)
        return len(self.points) - 1

    def scalar(self):
        self.scalars += 1
        return self.scalars - 1

    def equate(self, image, *terms):
        self.equations.append((image, terms))

    def written(self):
        data = _number(len(self.equations))
        for image, terms in self.equations:
            data += _number(len(image))
            for factor, p in image:
                data += _number(p) + (factor % ORDER).to_bytes(32, "big")
            data += _number(len(terms))
            for scalar, factor, p in terms:
                data += _number(scalar) + _number(p) + (factor % ORDER).to_bytes(32, "big")
        return data + b"".join(map(written, self.points[1:]))

    def check(self):
        """Refuses a relation of which nothing can be proved."""
        prove(self.equations and all(image and terms for image, terms in self.equations), "no equation, or an empty one")
        used = {p for image, terms in self.equations for p in [*(p for _, p in image), *(p for _, _, p in terms)]}
        prove(used <= set(range(len(self.points))) <= used | {0}, "a point that is not there, or that nothing uses")
        prove(all(total(tuple((factor, self.points[p]) for factor, p in image)) is not None for image, _ in self.equations), "an image is the identity")
        prove(all(map(self._has_effect, range(self.scalars))), "a scalar without effect")

    def _has_effect(self, scalar):
        for _, terms in self.equations:
            own = tuple((factor, self.points[p]) for s, factor, p in terms if s == scalar)
            if len(own) == 1 and own[0][0] % ORDER or total(own) is not None:
                return True
        return False

    def verify(self, tag, proof):
        """Raises NoProof unless the proof holds."""
        self.check()
        numbers = [int.from_bytes(proof[i : i + SCALAR], "big") for i in range(0, len(proof), SCALAR)]
        prove(len(proof) == SCALAR * (1 + self.scalars) and all(n < ORDER for n in numbers), "another length, or a number that is too large")
        challenge, responses = numbers[0], numbers[1:]
        data = self.written()
        for image, terms in self.equations:
            products = [(responses[scalar] * factor, self.points[p]) for scalar, factor, p in terms]
            commitment = total((*products, *((-challenge * factor, self.points[p]) for factor, p in image)))
            prove(commitment is not None, "a commitment is the identity")
            data += written(commitment)
        session = hashlib.shake_128(b"irtf-cfrg-fiat-shamir/session-id".ljust(RATE, b"\0") + tag).digest(32)
        wide = hashlib.shake_128(session.ljust(RATE, b"\0") + data).digest(48)
        prove(int.from_bytes(wide, "little") % ORDER == challenge, "the challenge is another")


def _number(n):
    return n.to_bytes(4, "little")
