"""As much of an X.509 certificate (RFC 5280) as the format asks about itself; paths are left to keys."""

import functools
import hashlib
import re
from contextlib import contextmanager
from itertools import islice

import der
import keys
from canonical import require, tried

EKU_TIME_STAMPING = "1.3.6.1.5.5.7.3.8"
_KEY_USAGE, _EXTENDED_KEY_USAGE, _SUBJECT_KEY_ID = "2.5.29.15", "2.5.29.37", "2.5.29.14"
_BASIC_CONSTRAINTS, _SUBJECT_ALT_NAME = "2.5.29.19", "2.5.29.17"
_ACCESS = "1.3.6.1.5.5.7.1.1"
_NAME_CONSTRAINTS = "2.5.29.30"
_CHECKED = (0x81, 0x82, 0xA4, 0x86, 0x87)  # addresses, hosts, directory names, URIs, network addresses
_URI = 0x86
_EC_NAME = bytes.fromhex("06072a8648ce3d0201")
_CURVES = {"1.3.132.0.33": 28, "1.2.840.10045.3.1.7": 32, "1.3.132.0.34": 48, "1.3.132.0.35": 66}  # and the bytes of a coordinate
_TEXT = {0x0C: "utf-8", 0x13: "ascii", 0x14: "latin-1", 0x16: "ascii", 0x1E: "utf-16-be"}


@functools.lru_cache(1024)  # each token has the same ones
class Certificate:
    """The members of a certificate that are looked at. Raises Refused for what cannot be read as one."""

    def __init__(self, encoding):
        self.encoding = encoding
        outer = der.Reader(der.read(encoding).expect(der.SEQUENCE).content)
        signed, self.algorithm, signature = outer.next(der.SEQUENCE), outer.next(der.SEQUENCE), outer.next()
        self.signed, self.signature, self._signature = signed.encoding, der.bits(signature), signature.encoding
        body = der.Reader(signed.content)
        wrapped = body.maybe(0xA0)
        version = wrapped.explicit().integer() if wrapped else 0
        require(0 <= version <= 2, "a version that is none")
        number = body.next()
        self.serial = number.integer()
        require(self.serial >= 0, "a serial number below zero")
        require(body.next(der.SEQUENCE).encoding == self.algorithm.encoding, "two signature algorithms")
        read_algorithm(self.algorithm)
        self.issuer = read_name(body.next())
        validity = der.Reader(body.next(der.SEQUENCE).content)
        times = validity.next(), validity.next()
        self.not_before, self.not_after = map(moment_of, times)
        self.subject = read_name(body.next())
        kept = (wrapped, number, self.algorithm), times
        self._head, self._times = (b"".join(item.encoding for item in items if item) for items in kept)
        self._read_key(body.next(der.SEQUENCE))
        self._listed, self._extensions = None, {}
        if version == 2:
            body.maybe(0x81), body.maybe(0x82)
            wrapped = body.maybe(0xA3)
            self._listed = der.first(wrapped.content) if wrapped else None
            self._extensions = _extensions(self._listed) if wrapped else {}

    def _read_key(self, node):
        self.spki = node.encoding
        fields = der.Reader(node.content)
        name, parameters = read_algorithm(fields.next(der.SEQUENCE))
        key, curve, self._plain = der.bits(fields.next()), None, self.spki
        if name == keys.RSA:
            require(parameters and parameters.encoding == b"\x05\x00", "an RSA key with parameters")
            numbers = der.Reader(der.first(key).expect(der.SEQUENCE).content)
            modulus, self.rsa_exponent = numbers.next().integer(), numbers.next().integer()
            require(modulus > 0 and 0 < self.rsa_exponent < 2**63, "no RSA key")
            self.rsa_bits = modulus.bit_length()
        elif name == keys.EC:
            curve = parameters.name() if parameters else None
            require(curve in _CURVES and len(key) == 1 + 2 * _CURVES[curve] and key[0] == 4, "no point of a curve")
            self._plain = der.sequence(der.sequence(_EC_NAME + parameters.encoding) + der.sequence(b"\0" + key, der.BIT_STRING))
            require(keys.is_key(self._plain), "a point that is not on its curve")
        elif name == keys.ED25519:
            require(parameters is None and len(key) == 32, "no Ed25519 key")
        self.key_algorithm = name, curve  # object identifiers; None: it has no curve

    def as_root(self):
        """It as openssl can read it: without what follows a last known member, and without a name of its issuer."""
        listed = b""
        for extension in der.Reader(self._listed.content).all() if self._listed else ():
            fields = der.Reader(extension.content)
            members = fields.next(), fields.maybe(der.BOOLEAN), fields.next()
            listed += der.sequence(b"".join(member.encoding for member in members if member))
        extensions = der.sequence(der.sequence(listed), 0xA3) if listed else b""
        names = self.subject + der.sequence(self._times) + self.subject
        signed = der.sequence(self._head + names + self._plain + extensions)
        return der.sequence(signed + self.algorithm.encoding + self._signature)

    def is_valid_at(self, time):
        """Whether it had begun and not ended at a time, in seconds."""
        return self.not_before <= time <= self.not_after

    def extension(self, name):
        """The value of an extension; None if it is not there."""
        return self._extensions.get(name, (False, None))[1]

    def purposes(self):
        """The extended key usages; None if the extension is not there."""
        value = self.extension(_EXTENDED_KEY_USAGE)
        return _oids(value) if value is not None else None

    def uris(self):
        """The URIs among the subject alternative names, as they are written."""
        value = self.extension(_SUBJECT_ALT_NAME)
        return [item.content.decode("ascii") for item in _members(value) if item.tag == _URI] if value is not None else []

    def is_usable(self):
        """Whether a path may lead through it or end at it: not with a short RSA key, nor with name constraints that are not checked."""
        if self.key_algorithm[0] == keys.RSA and self.rsa_bits < 2048:
            return False
        value = self.extension(_NAME_CONSTRAINTS)
        return value is None or bool(tried(lambda: _are_checked(der.read(value))))

    def access_methods(self, name):
        """The kinds of places that authorityInfoAccess names."""
        value = self.extension(name)
        return [der.first(item.content).name() for item in _members(value)] if value is not None else []

    def names(self, kind):
        """The texts of one kind in the subject."""
        parts = [der.Reader(part.content) for group in _members(self.subject) for part in der.Reader(group.content).all()]
        texts = [(part.next().name(), part.next()) for part in parts]
        return [node.content.decode(_TEXT[node.tag]) for name, node in texts if name == kind and node.tag in _TEXT]

    def subject_key_id(self):
        value = self.extension(_SUBJECT_KEY_ID)
        return der.first(value).expect(der.OCTET_STRING).content if value is not None else None

    def stamps_alone(self):
        """Whether the extended key usage is critical and names time stamping and nothing else."""
        critical, value = self._extensions.get(_EXTENDED_KEY_USAGE, (False, None))
        return critical and _oids(value) == [EKU_TIME_STAMPING]

    def is_ca(self):
        """Whether it is a CA's: basicConstraints with cA, and keyCertSign if it has key usage."""
        return self.says_ca() and self.may(5)

    def says_ca(self):
        """Whether it has basicConstraints with cA."""
        value = self.extension(_BASIC_CONSTRAINTS)
        flag = der.Reader(der.first(value).content).maybe(der.BOOLEAN) if value is not None else None
        return flag is not None and flag.content == b"\xff"

    def may(self, *bits):
        """Whether key usage, if it is there, has one of these bits."""
        value = self.extension(_KEY_USAGE)
        flags = int.from_bytes(der.first(value).content[1:3].ljust(2, b"\0"), "big") if value is not None else 0xFFFF
        return any(flags >> (15 - bit) & 1 for bit in bits)


def _are_checked(constraints):
    """Whether all bases of name constraints are of the kinds that are checked, without a minimum or maximum."""
    subtrees = [subtree for node in der.fields(constraints, [0xA0], [0xA1]) if node for subtree in node.children]
    return all(len(subtree.expect(der.SEQUENCE).children) == 1 and subtree.children[0].tag in _CHECKED for subtree in subtrees)


def verify_path(certificate, others, root, purpose, seconds):
    """Whether a path from a certificate to a root is valid at a time (None: at any); others may stand between."""
    is_known = certificate.encoding == root.encoding or keys.is_certificate(root.encoding)
    trusted = root.encoding if is_known else root.as_root()
    return keys.verify_path(certificate.encoding, tuple(other.encoding for other in others), trusted, purpose, seconds)


def between(certificates):
    """Those through which a path may lead: of keys that take long few, and of those that take too long none."""
    taken, costly = [], 0
    for certificate in certificates:
        if certificate.key_algorithm[0] == keys.RSA:
            bits, exponent = certificate.rsa_bits, certificate.rsa_exponent
            if bits > 8192 or not 3 <= exponent <= 65537 or exponent % 2 == 0 or (bits > 4096 and costly == 2):
                continue
            costly += bits > 4096
        taken.append(certificate)
    return taken


def moment_of(node):
    """A time of a certificate or a list, in seconds."""
    time = der.moment(node)
    require(time.denominator == 1, "a time with a fraction")
    return int(time)


def read_algorithm(node):
    """An algorithm: its object identifier, and its parameters or None."""
    fields = der.Reader(node.content)
    name = fields.next().name()
    return name, next(fields.all(), None)


def read_name(node):
    """The encoding of a name whose texts are what their types say."""
    for group in der.Reader(node.expect(der.SEQUENCE).content).all(der.SET):
        for part in der.Reader(group.content).all(der.SEQUENCE):
            fields = der.Reader(part.content)
            fields.next().name()
            text = fields.next()
            require(text.tag in _IS_TEXT and _IS_TEXT[text.tag](text.content), "a name with a text that is none")
    return node.encoding


def _is_bmp(text):
    units = [int.from_bytes(text[i : i + 2], "big") for i in range(0, len(text), 2)]
    return len(text) % 2 == 0 and not any(0xD800 <= unit < 0xE000 or 0xFDD0 <= unit < 0xFDF0 or unit > 0xFFFD for unit in units)


_IS_TEXT = {
    0x0C: lambda text: text.decode("utf-8", "ignore").encode() == text,
    0x12: re.compile(rb"[0-9 ]*\Z").match,
    0x13: re.compile(rb"[A-Za-z0-9 '()*+,./:=?&-]*\Z").match,
    0x14: lambda _: True,
    0x16: bytes.isascii,
    0x1E: _is_bmp,
}


def _members(value, tag=None):
    """The members of the sequence with which a value begins."""
    return list(der.Reader(der.first(value).expect(der.SEQUENCE).content).all(tag))


def _oids(value):
    return [member.name() for member in _members(value)]


def _check_basic_constraints(value, _):
    fields = der.Reader(der.first(value).expect(der.SEQUENCE).content)
    fields.maybe(der.BOOLEAN)
    length = fields.maybe(der.INTEGER)
    require(length is None or 0 <= length.integer() < 2**63, "no path length")


def _check_alternative_names(value, _):
    for name in _members(value):
        require(name.tag not in (0x81, 0x82, _URI) or name.content.isascii(), "a name that is not in ASCII")
        require(name.tag != _URI or _is_uri(name.content), "a URI that is none")
        require(name.tag != 0x87 or len(name.content) in (4, 16), "an address that is none")


def _is_uri(text):
    """Whether there are no control characters, and a colon only after a scheme or behind a slash."""
    start = re.match(rb"[^/?#]*", text)[0]
    return not re.search(rb"[\x00-\x1f\x7f]", text) and (b":" not in start or bool(re.match(rb"[A-Za-z][A-Za-z0-9+.-]*:", start)))


def _check_constraints(value, _):
    fields = der.Reader(der.read(value).expect(der.SEQUENCE).content)
    subtrees = [item.content for item in (fields.maybe(0xA0), fields.maybe(0xA1)) if item]
    require(any(subtrees) and next(fields.all(), None) is None, "no name constraints")
    for subtree in (item for content in subtrees for item in der.Reader(content).all(der.SEQUENCE)):
        base = der.Reader(subtree.content).next()
        require(base.tag not in (0x81, 0x82, _URI) or base.content.isascii(), "a constraint that is not in ASCII")
        require(base.tag != 0x87 or len(base.content) in (8, 32), "a constraint on addresses that is none")


def check_key_identifier(value, critical):
    """Refuses an authorityKeyIdentifier that is none."""
    fields = der.Reader(der.first(value).expect(der.SEQUENCE).content)
    require(not critical, "an authority key identifier that is critical")
    fields.maybe(0x80)


def _check_points(value, _):
    for point in _members(value, der.SEQUENCE):
        name = der.Reader(point.content).maybe(0xA0)
        if name is not None:
            der.first(name.content).expect(0xA0)


def _check_policies(value, _):
    names = [der.first(policy.content).expect(der.OID).content for policy in _members(value, der.SEQUENCE)]
    require(len(set(names)) == len(names), "a policy twice")


_NOT_CRITICAL = (_SUBJECT_KEY_ID, _ACCESS)
# The extensions of RFC 5280 whose form is looked at, even where nothing else of them is.
_FORMS = {
    _SUBJECT_KEY_ID: lambda value, _: der.first(value).expect(der.OCTET_STRING),
    _KEY_USAGE: lambda value, _: der.bits(der.first(value)),
    _SUBJECT_ALT_NAME: _check_alternative_names,
    _BASIC_CONSTRAINTS: _check_basic_constraints,
    "2.5.29.30": _check_constraints,
    "2.5.29.31": _check_points,
    "2.5.29.32": _check_policies,
    "2.5.29.33": lambda value, _: _members(value, der.SEQUENCE),
    "2.5.29.35": check_key_identifier,
    "2.5.29.36": lambda value, _: der.first(value).expect(der.SEQUENCE),
    _EXTENDED_KEY_USAGE: lambda value, _: _oids(value),
    "2.5.29.54": lambda value, _: der.first(value).integer(),
    _ACCESS: lambda value, _: [der.first(item.content).name() for item in _members(value, der.SEQUENCE)],
}


def _extensions(node):
    found = {}
    for name, critical, value, repeated in read_extensions(node):
        require(not repeated, "an extension twice")
        require(not critical or name not in _NOT_CRITICAL, "an extension that must not be critical")
        if name in _FORMS:
            _FORMS[name](value, critical)
        found[name] = (critical, value)
    return found


def read_extensions(node):
    """The extensions as (name, critical, value, whether it was there before)."""
    found, seen = [], set()
    for child in der.Reader(node.expect(der.SEQUENCE).content).all(der.SEQUENCE):
        fields = der.Reader(child.content)
        name, critical = fields.next().name(), fields.maybe(der.BOOLEAN)
        value = fields.next(der.OCTET_STRING).content
        found.append((name, critical is not None and critical.content == b"\xff", value, name in seen))
        seen.add(name)
    return found


# What looking for paths may cost: section "Effort".
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
        steps = 0 if certificate.encoding == root.encoding else sum(1 for _ in islice(_search(certificate, others, root), _OF_RECORD + 1))
        self._take((root.encoding, *(hashlib.sha256(item).digest() for item in encodings)), steps)
        return others

    def once(self, key):
        """Takes a step for a signature, unless it was looked at before. Raises Spent if there is none left."""
        self._take(("signature", *key), 1)

    def _take(self, key, steps):
        if key not in self._own:
            require(steps <= self._left, "no steps are left", Spent)
            self._left, self._of_file = self._left - steps, self._of_file - steps
            self._own.add(key)


def _search(certificate, others, root):
    """All ways by names from a certificate, the shorter ones first; those that lead to the root end with it."""
    ways = [(certificate,)]
    for way in ways:
        if way[-1].issuer == root.subject:
            yield (*way, root)
        further = [(*way, other) for other in others if other.subject == way[-1].issuer and other not in way]
        ways += further
        yield from further


def ways(certificate, others, root):
    """All ways from a certificate to a root by names; the root itself is its own way."""
    if certificate.encoding == root.encoding:
        return [(certificate,)]
    return [way for way in _search(certificate, others, root) if way[-1] is root]


def _leads(certificate, others, root):
    """Whether the names lead to the root."""
    reached = [certificate]
    for item in reached:
        reached += [other for other in others if other.subject == item.issuer and other not in reached]
    return certificate.encoding == root.encoding or any(item.issuer == root.subject for item in reached)
