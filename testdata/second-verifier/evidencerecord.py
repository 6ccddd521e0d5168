"""Evidence records (RFC 4998): form and hashes, section "Evidence records" of docs/format.md."""

import hashlib

import der
import tokens
from canonical import Refused
from shapes import require

_MAX_STAMPS, _MAX_LISTS = 64, 256


class GroupUnknown(tokens.NotProved):
    """The evidence record is over something that is not in the record."""


class ArchiveTimeStamp:
    """A token, and the way from what it is over to what it stamps."""

    def __init__(self, node):
        fields = der.Fields(node)
        algorithm = fields.maybe(0xA0)
        tokens.unless(fields.maybe(0xA1) is None, "attributes")
        tree = fields.maybe(0xA2)
        self.encoding = fields.next(der.SEQUENCE).encoding
        fields.end()
        self.token = tokens.read(self.encoding)
        named = _name(algorithm.retagged(der.SEQUENCE)) if algorithm else self.token.imprint_algorithm
        self.algorithm = tokens.DIGESTS.get(named)
        tokens.unless(self.algorithm is not None, "a hash algorithm that is not accepted")
        self.lists = None
        if tree is not None:
            tokens.unless(len(tree.children) <= _MAX_LISTS, "too many lists")
            self.lists = [self._list(child, place) for place, child in enumerate(tree.children)]
            require(self.lists, "an empty hash tree")

    def _list(self, node, place):
        hashes = [child.expect(der.OCTET_STRING).content for child in node.expect(der.SEQUENCE).children]
        require(len(hashes) >= (1 if place else 2), "a list that is too short")
        require(len(set(hashes)) == len(hashes), "a hash twice in a list")
        require(all(len(item) == hashlib.new(self.algorithm).digest_size for item in hashes), "a hash of another length")
        return hashes

    def root(self):
        """What the token stamps, if there is a tree."""
        found = _joined(self.algorithm, self.lists[0])
        for hashes in self.lists[1:]:
            require(found not in hashes, "a node that is in the list already")
            found = _joined(self.algorithm, [*hashes, found])
        return found

    def check_stamps(self, root):
        require(tokens.DIGESTS.get(self.token.imprint_algorithm) == self.algorithm, "another algorithm is stamped")
        require(self.token.imprint == root, "something else is stamped")


def _name(encoding):
    """The object identifier of an algorithm without parameters, or with NULL."""
    return tokens.algorithm_name(der.read(encoding))


def _joined(algorithm, hashes):
    return _hash(algorithm, b"".join(sorted(hashes)))


def _hash(algorithm, data):
    return hashlib.new(algorithm, data).digest()


def read(data):
    """An evidence record that was read. Raises NotProved for what is none, or cannot be looked into."""
    try:
        return EvidenceRecord(data)
    except Refused as err:
        raise tokens.Malformed(str(err)) from err


class EvidenceRecord:
    """An evidence record. Raises Refused or NotProved for what is none, or cannot be looked into."""

    def __init__(self, data):
        require(len(data) <= tokens.MAX_BYTES, "the evidence record is too long")
        fields = der.Fields(der.read(data))
        require(fields.next().integer() == 1, "another version than 1")
        algorithms = [tokens.algorithm_name(child) for child in fields.next(der.SEQUENCE).children]
        tokens.unless(fields.maybe(0xA0) is None, "cryptoInfos")
        tokens.unless(fields.maybe(0xA1) is None, "encryptionInfo")
        chains = fields.next(der.SEQUENCE)
        fields.end()
        self._chain_nodes = chains.children
        stamps = sum(len(chain.children) for chain in chains.children)
        tokens.unless(stamps <= _MAX_STAMPS, "too many time stamps")
        require(chains.children and all(chain.children for chain in chains.children), "an empty chain")
        self.chains = [[ArchiveTimeStamp(child) for child in chain.expect(der.SEQUENCE).children] for chain in chains.children]
        self._check_algorithms([tokens.DIGESTS.get(name) for name in algorithms])

    def _check_algorithms(self, stated):
        used = []
        for chain in self.chains:
            require(len({stamp.algorithm for stamp in chain}) == 1, "two algorithms in a chain")
            used.append(chain[0].algorithm)
        tokens.unless(None not in stated, "a hash algorithm that is not accepted")
        require(sorted(stated) == sorted(set(used)), "digestAlgorithms has not the algorithms of the chains")

    def stamps(self):
        return [stamp for chain in self.chains for stamp in chain]

    def covered(self, always, sometimes):
        """Checks all hashes. Gives those of sometimes that are covered; always are the two objects that must be."""
        groups = [self._check_chain(place, always, sometimes) for place in range(len(self.chains))]
        require(all(group == groups[0] for group in groups), "two groups")
        return groups[0]

    def _check_chain(self, place, always, sometimes):
        first, *further = self.chains[place]
        require(first.lists is not None, "the first time stamp of a chain without a hash tree")
        older = self._older(place)
        hashes = {self._hash_of(first.algorithm, item, older): item for item in [*always, *sometimes]}
        needed = {self._hash_of(first.algorithm, item, older) for item in always}
        require(needed <= set(first.lists[0]), "it is over something else")
        if not set(first.lists[0]) <= set(hashes):
            raise GroupUnknown("it is over something else, too")
        first.check_stamps(first.root())
        before = first
        for stamp in further:
            _check_renewal(stamp, before)
            before = stamp
        return {hashes[item] for item in first.lists[0]} - set(always)

    def _older(self, place):
        """The DER of the chains before, or None for the first chain."""
        if place == 0:
            return None
        return der.sequence(b"".join(node.encoding for node in self._chain_nodes[:place]))

    @staticmethod
    def _hash_of(algorithm, item, older):
        found = _hash(algorithm, item)
        return found if older is None else _hash(algorithm, found + _hash(algorithm, older))


def _check_renewal(stamp, before):
    """A further time stamp of a chain is over the one before it."""
    covered = _hash(stamp.algorithm, before.encoding)
    if stamp.lists is None:
        stamp.check_stamps(covered)
        return
    require(covered in stamp.lists[0], "it does not renew the time stamp before it")
    stamp.check_stamps(stamp.root())
