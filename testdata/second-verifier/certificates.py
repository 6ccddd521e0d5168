"""As much of an X.509 certificate (RFC 5280) as the format asks about itself; paths are left to openssl."""

import datetime

import der
from canonical import Refused
from shapes import require

EKU_TIME_STAMPING = "1.3.6.1.5.5.7.3.8"
_KEY_USAGE, _EXTENDED_KEY_USAGE, _SUBJECT_KEY_ID = "2.5.29.15", "2.5.29.37", "2.5.29.14"
_BASIC_CONSTRAINTS = "2.5.29.19"
_UTC_TIME = 0x17
_RSA = "1.2.840.113549.1.1.1"


class Certificate:
    """The members of a certificate that are looked at. Raises Refused for what is none."""

    def __init__(self, encoding):
        self.encoding = encoding
        outer = der.Fields(der.read(encoding))
        body = der.Fields(outer.next())
        body.maybe(0xA0)
        self.serial = body.next().integer()
        body.next(der.SEQUENCE)
        self.issuer = body.next(der.SEQUENCE).encoding
        self._validity = [_moment(child) for child in body.next(der.SEQUENCE).children]
        self.subject = body.next(der.SEQUENCE).encoding
        self.spki = body.next(der.SEQUENCE).encoding
        body.maybe(0x81)
        body.maybe(0x82)
        wrapped = body.maybe(0xA3)
        body.end()
        self._extensions = _extensions(wrapped.explicit()) if wrapped else {}

    def is_valid_at(self, time):
        """Whether it had begun and not ended at a time, in seconds."""
        return self._validity[0] <= time <= self._validity[1]

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
        _, value = self._extensions.get(_BASIC_CONSTRAINTS, (False, None))
        flags = der.read(value).children if value else []
        return bool(flags) and flags[0].tag == der.BOOLEAN and flags[0].content == b"\xff" and self._may(5)

    def _may(self, *bits):
        """Whether key usage, if it is there, has one of these bits."""
        _, value = self._extensions.get(_KEY_USAGE, (False, None))
        if value is None:
            return True
        content = der.read(value).expect(der.BIT_STRING).content
        flags = int.from_bytes(content[1:3].ljust(2, b"\0"), "big")
        return any(flags >> (15 - bit) & 1 for bit in bits)

    def may_sign(self):
        """Whether key usage, if it is there, allows signatures (digitalSignature or contentCommitment)."""
        return self._may(0, 1)


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


def _moment(node):
    """A time of a certificate, in seconds."""
    text = node.content.decode("ascii", "replace")
    if node.tag == _UTC_TIME:
        text = ("19" if text >= "5" else "20") + text
    try:
        moment = datetime.datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
    except ValueError as err:
        raise Refused(f"a validity that is none: {err}") from err
    return int(moment.timestamp())


def _extensions(node):
    found = {}
    for child in node.children:
        fields = der.Fields(child)
        name, critical = fields.next().oid(), fields.maybe(der.BOOLEAN)
        value = fields.next(der.OCTET_STRING).content
        fields.end()
        require(name not in found, "an extension twice")
        found[name] = (critical is not None and critical.content == b"\xff", value)
    return found
