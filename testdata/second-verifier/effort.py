"""What looking for certificate paths may cost: section "Effort" of docs/format.md."""

import hashlib
from contextlib import contextmanager

from certificates import Certificate

_STEPS_OF_SEARCH, _STEPS_OF_RECORD, _ALLOWANCE, _FUND = 100, 512, 32, 1024
_REMEMBERED, _REMEMBERED_BYTES = 256, 65_536


class Spent(Exception):
    """A search that is not made."""


class Effort:
    """The budget of a file. Searches are asked for in the order in which the format has them made."""

    def __init__(self):
        self._fund, self._remembered = _FUND, set()
        self._left, self._own = 0, {}

    @contextmanager
    def part(self):
        """What is inside takes its steps as one record, or as the checkpoint."""
        limit = self._left = min(_STEPS_OF_RECORD, _ALLOWANCE + self._fund)
        self._own = {}
        try:
            yield
        finally:
            self._fund -= max(0, limit - self._left - _ALLOWANCE)
            for key, fits in self._own.items():
                if fits and len(self._remembered) < _REMEMBERED:
                    self._remembered.add(key)

    def candidates(self, certificate, others, root, time):
        """The certificates among which a search is made; None if names lead nowhere. Raises Spent if it would take too long."""
        root = Certificate(root)
        ends = (certificate.encoding, root.encoding)
        others = _distinct([item for item in others if item.is_valid_at(time) and item.encoding not in ends])
        if not certificate.is_valid_at(time) or not root.is_valid_at(time) or not _leads(certificate, others, root):
            return None
        steps = _count(certificate, others, root)
        if steps > _STEPS_OF_SEARCH:
            raise Spent
        encodings = [item.encoding for item in (certificate, *others)]
        key = (root.encoding, *(hashlib.sha256(item).digest() for item in encodings))
        if key not in self._own and key not in self._remembered:
            if steps > self._left:
                raise Spent
            self._left -= steps
            self._own[key] = steps > 0 and sum(map(len, encodings)) <= _REMEMBERED_BYTES
        return others


    def once(self, key):
        """Takes a step for a signature, unless it was looked at before. Raises Spent if there is none left."""
        key = ("signature", *key)
        if key not in self._own and key not in self._remembered:
            if self._left < 1:
                raise Spent
            self._left -= 1
            self._own[key] = True


def ways(certificate, others, root):
    """All ways from a certificate to a root by names; the root itself is its own way."""
    if certificate.encoding == root.encoding:
        return [(certificate,)]
    found, open_ways = [], [(certificate,)]
    while open_ways:
        way = open_ways.pop(0)
        if way[-1].issuer == root.subject:
            found.append((*way, root))
        open_ways += [(*way, other) for other in others if other.subject == way[-1].issuer and other not in way]
    return found


def _distinct(certificates):
    return list({item.encoding: item for item in certificates}.values())


def _leads(certificate, others, root):
    """Whether the names lead to the root."""
    if certificate.encoding == root.encoding:
        return True
    reached = [certificate]
    for item in reached:
        if root.subject == item.issuer:
            return True
        reached += [other for other in others if other.subject == item.issuer and other not in reached]
    return False


def _count(certificate, others, root):
    """The steps, or a number above those of a search."""
    if certificate.encoding == root.encoding:
        return 0
    steps, ways = 0, [(certificate,)]
    while ways and steps <= _STEPS_OF_SEARCH:
        way = ways.pop()
        steps += way[-1].issuer == root.subject
        further = [other for other in others if other.subject == way[-1].issuer and other not in way]
        steps += len(further)
        ways += [(*way, other) for other in further]
    return steps
