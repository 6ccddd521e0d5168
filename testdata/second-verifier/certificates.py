"""As much of an X.509 certificate (RFC 5280) as the format asks about itself; paths are left to openssl."""

import datetime

import der
from canonical import Refused
from shapes import digest_of, require

EKU_TIME_STAMPING = "1.3.6.1.5.5.7.3.8"
_KEY_USAGE, _EXTENDED_KEY_USAGE, _SUBJECT_KEY_ID = "2.5.29.15", "2.5.29.37", "2.5.29.14"
_BASIC_CONSTRAINTS, _SUBJECT_ALT_NAME = "2.5.29.19", "2.5.29.17"
_NAME_CONSTRAINTS, _LEAST_RSA = "2.5.29.30", 2048
_CHECKED = (0x81, 0x82, 0xA4, 0x86, 0x87)  # addresses, hosts, directory names, URIs, network addresses
_URI = 0x86
_UTC_TIME = 0x17
_RSA = "1.2.840.113549.1.1.1"
_TEXT = {0x0C: "utf-8", 0x13: "ascii", 0x14: "latin-1", 0x16: "ascii", 0x1E: "utf-16-be"}


class Certificate:
    """The members of a certificate that are looked at. Raises Refused for what is none."""

    def __init__(self, encoding):
        try:
            self._read(encoding)
            self._read_inside()
        except (ValueError, IndexError) as err:
            raise Refused(f"no certificate: {err}") from err

    def _read_inside(self):
        """Looks at everything that may be asked later, so that nothing fails then."""
        self.key_id(), self.key_bits(), self.subject_key_id(), self.purposes(), self.uris(), self.says_ca(), self.may(0)
        if self.key_algorithm()[0] == _RSA:
            require(self.rsa_bits() > 0 and self.rsa_exponent() > 0, "no RSA key")

    def _read(self, encoding):
        self.encoding = encoding
        outer = der.Fields(der.read(encoding))
        signed = outer.next()
        self.signed, self.algorithm = signed.encoding, outer.next(der.SEQUENCE)
        self.signature = outer.next(der.BIT_STRING).content[1:]
        body = der.Fields(signed)
        body.maybe(0xA0)
        self.serial = body.next().integer()
        body.next(der.SEQUENCE)
        self.issuer = body.next(der.SEQUENCE).encoding
        self.not_before, self.not_after = (moment_of(child) for child in body.next(der.SEQUENCE).children)
        self.subject = body.next(der.SEQUENCE).encoding
        self.spki = body.next(der.SEQUENCE).encoding
        body.maybe(0x81)
        body.maybe(0x82)
        wrapped = body.maybe(0xA3)
        body.end()
        self._extensions = _extensions(wrapped.explicit()) if wrapped else {}

    def is_valid_at(self, time):
        """Whether it had begun and not ended at a time, in seconds."""
        return self.not_before <= time <= self.not_after

    def key_id(self):
        """The digest of the key, by which the format names it."""
        return digest_of(self.spki)

    def key_bits(self):
        """The bits of the key without its algorithm."""
        return der.read(self.spki).children[1].content[1:]

    def extension(self, name):
        """The value of an extension; None if it is not there."""
        return self._extensions.get(name, (False, None))[1]

    def purposes(self):
        """The extended key usages; None if the extension is not there."""
        value = self.extension(_EXTENDED_KEY_USAGE)
        return [use.oid() for use in der.read(value).children] if value else None

    def uris(self):
        """The URIs among the subject alternative names, as they are written."""
        value = self.extension(_SUBJECT_ALT_NAME)
        return [item.content.decode("latin-1") for item in der.read(value).children if item.tag == _URI] if value else []

    def is_usable(self):
        """Whether a path may lead through it or end at it: not with a short RSA key, nor with name constraints that are not checked."""
        if self.key_algorithm()[0] == _RSA and self.rsa_bits() < _LEAST_RSA:
            return False
        value = self.extension(_NAME_CONSTRAINTS)
        try:
            return value is None or _are_checked(der.read(value))
        except Refused:
            return False

    def access_methods(self, name):
        """The kinds of places that authorityInfoAccess names."""
        value = self.extension(name)
        return [item.children[0].oid() for item in der.read(value).children] if value else []

    def names(self, kind):
        """The texts of one kind in the subject."""
        parts = [der.Fields(part) for group in der.read(self.subject).children for part in group.children]
        texts = [(part.next().oid(), part.next()) for part in parts]
        return [node.content.decode(_TEXT[node.tag]) for name, node in texts if name == kind and node.tag in _TEXT]

    def key_algorithm(self):
        """The object identifiers of the key's algorithm, and of its curve if it has one."""
        kind = der.read(self.spki).children[0].children
        curve = kind[1].oid() if len(kind) > 1 and kind[1].tag == der.OID else None
        return kind[0].oid(), curve

    def rsa_bits(self):
        bits = der.read(self.spki).children[1].content[1:]
        return der.read(bits).children[0].integer().bit_length()

    def rsa_exponent(self):
        bits = der.read(self.spki).children[1].content[1:]
        return der.read(bits).children[1].integer()

    def subject_key_id(self):
        _, value = self._extensions.get(_SUBJECT_KEY_ID, (False, None))
        return der.read(value).expect(der.OCTET_STRING).content if value else None

    def stamps_alone(self):
        """Whether the extended key usage is critical and names time stamping and nothing else."""
        critical, value = self._extensions.get(_EXTENDED_KEY_USAGE, (False, None))
        return critical and [use.oid() for use in der.read(value).children] == [EKU_TIME_STAMPING]

    def is_ca(self):
        """Whether it is a CA's: basicConstraints with cA, and keyCertSign if it has key usage."""
        return self.says_ca() and self.may(5)

    def says_ca(self):
        """Whether it has basicConstraints with cA."""
        _, value = self._extensions.get(_BASIC_CONSTRAINTS, (False, None))
        flags = der.read(value).children if value else []
        return bool(flags) and flags[0].tag == der.BOOLEAN and flags[0].content == b"\xff"

    def may(self, *bits):
        """Whether key usage, if it is there, has one of these bits."""
        _, value = self._extensions.get(_KEY_USAGE, (False, None))
        if value is None:
            return True
        content = der.read(value).expect(der.BIT_STRING).content
        flags = int.from_bytes(content[1:3].ljust(2, b"\0"), "big")
        return any(flags >> (15 - bit) & 1 for bit in bits)

    def may_sign(self):
        """Whether key usage, if it is there, allows signatures (digitalSignature or contentCommitment)."""
        return self.may(0, 1)


def _are_checked(constraints):
    """Whether all bases of name constraints are of the kinds that are checked, without a minimum or maximum."""
    lists = der.Fields(constraints.expect(der.SEQUENCE))
    subtrees = [subtree for node in (lists.maybe(0xA0), lists.maybe(0xA1)) if node for subtree in node.children]
    lists.end()
    return all(len(subtree.expect(der.SEQUENCE).children) == 1 and subtree.children[0].tag in _CHECKED for subtree in subtrees)


def between(certificates):
    """Those through which a path may lead: of keys that take long few, and of those that take too long none."""
    taken, costly = [], 0
    for certificate in certificates:
        if certificate.key_algorithm()[0] == _RSA:
            bits, exponent = certificate.rsa_bits(), certificate.rsa_exponent()
            if bits > 8192 or not 3 <= exponent <= 65537 or exponent % 2 == 0 or (bits > 4096 and costly == 2):
                continue
            costly += bits > 4096
        taken.append(certificate)
    return taken


def moment_of(node):
    """A time of a certificate or a list, in seconds."""
    text = node.content.decode("ascii", "replace")
    if node.tag == _UTC_TIME:
        text = ("19" if text >= "5" else "20") + text
    require(len(text) == 15, "a time that is none")
    try:
        moment = datetime.datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
    except ValueError as err:
        raise Refused(f"a time that is none: {err}") from err
    return int(moment.timestamp())


def _extensions(node):
    found = {}
    for name, critical, value, repeated in read_extensions(node):
        require(not repeated, "an extension twice")
        found[name] = (critical, value)
    return found


def read_extensions(node):
    """The extensions as (name, critical, value, whether it was there before)."""
    found, seen = [], set()
    for child in node.expect(der.SEQUENCE).children:
        fields = der.Fields(child)
        name, critical = fields.next().oid(), fields.maybe(der.BOOLEAN)
        value = fields.next(der.OCTET_STRING).content
        fields.end()
        found.append((name, critical is not None and critical.content == b"\xff", value, name in seen))
        seen.add(name)
    return found
