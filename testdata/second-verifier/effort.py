"""What looking for certificate paths may cost: section "Effort" of docs/format.md."""

import hashlib
from contextlib import contextmanager

from certificates import Certificate

_OF_RECORD, _OF_FILE, _ADDED_BY_EACH = 128, 2048, 32


class Spent(Exception):
    """A search that is not made."""


class Effort:
    """What a file has left. Searches are asked for in the order in which the format has them made."""

    def __init__(self):
        self._of_file = _OF_FILE
        self._left, self._own = 0, set()

    @contextmanager
    def part(self):
        """What is inside takes its steps as one record, or as the stamped checkpoints."""
        self._of_file += _ADDED_BY_EACH
        self._left, self._own = min(_OF_RECORD, self._of_file), set()
        yield

    def candidates(self, certificate, others, root, time):
        """The certificates among which a search is made; None if names lead nowhere. Raises Spent if it would take too long."""
        root = Certificate(root)
        ends = (certificate.encoding, root.encoding)
        others = list({item.encoding: item for item in others if item.is_valid_at(time) and item.encoding not in ends}.values())
        if not certificate.is_valid_at(time) or not root.is_valid_at(time) or not _leads(certificate, others, root):
            return None
        encodings = [item.encoding for item in (certificate, *others)]
        self._take((root.encoding, *(hashlib.sha256(item).digest() for item in encodings)), _count(certificate, others, root))
        return others

    def once(self, key):
        """Takes a step for a signature, unless it was looked at before. Raises Spent if there is none left."""
        self._take(("signature", *key), 1)

    def _take(self, key, steps):
        if key in self._own:
            return
        if steps > self._left:
            raise Spent
        self._left -= steps
        self._of_file -= steps
        self._own.add(key)


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
    """The steps, or a number above those of a record."""
    if certificate.encoding == root.encoding:
        return 0
    steps, ways = 0, [(certificate,)]
    while ways and steps <= _OF_RECORD:
        way = ways.pop()
        steps += way[-1].issuer == root.subject
        further = [other for other in others if other.subject == way[-1].issuer and other not in way]
        steps += len(further)
        ways += [(*way, other) for other in further]
    return steps
