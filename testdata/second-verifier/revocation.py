"""What CAs said about the revocation of certificates: sections "Revocation" and "Carried evidence" of docs/format.md."""

import functools
import hashlib

import der
import keys
import openssl
from canonical import Refused
from certificates import Certificate, between, check_key_identifier, moment_of, read_algorithm, read_extensions, read_name, verify_path
from effort import Spent
from shapes import require

GRACE = 24 * 60 * 60
_SKEW = 5 * 60
_MOST_CARRIED, _MOST_CARRIED_BYTES = 1024, 16_777_216
_MOST_RESPONSE, _MOST_RESPONDERS = 1_048_576, 16
_REMOVE_FROM_CRL = 8

_REASON_CODE, _INVALIDITY_DATE, _CERTIFICATE_ISSUER = "2.5.29.21", "2.5.29.24", "2.5.29.29"
_NUMBER, _AUTHORITY_KEY, _UTC_TIME = "2.5.29.20", "2.5.29.35", 0x17
_DELTA, _DISTRIBUTION_POINT, _EXPIRED = "2.5.29.27", "2.5.29.28", "2.5.29.60"
_BASIC, _NO_CHECK, _ARCHIVE_CUTOFF = "1.3.6.1.5.5.7.48.1.1", "1.3.6.1.5.5.7.48.1.5", "1.3.6.1.5.5.7.48.1.6"
_EKU_OCSP_SIGNING = "1.3.6.1.5.5.7.3.9"
_HASHES = {
    "1.3.14.3.2.26": "sha1",
    "2.16.840.1.101.3.4.2.1": "sha256",
    "2.16.840.1.101.3.4.2.2": "sha384",
    "2.16.840.1.101.3.4.2.3": "sha512",
}
_RSA_KEY, _EC_KEY, _ED25519 = "1.2.840.113549.1.1.1", "1.2.840.10045.2.1", "1.3.101.112"
_RSA_PSS = "1.2.840.113549.1.1.10"
_SIGNATURES = {
    "1.2.840.113549.1.1.11": (_RSA_KEY, "sha256"),
    "1.2.840.113549.1.1.12": (_RSA_KEY, "sha384"),
    "1.2.840.113549.1.1.13": (_RSA_KEY, "sha512"),
    "1.2.840.10045.4.3.2": (_EC_KEY, "sha256"),
    "1.2.840.10045.4.3.3": (_EC_KEY, "sha384"),
    "1.2.840.10045.4.3.4": (_EC_KEY, "sha512"),
    _ED25519: (_ED25519, None),
}


class Unknown(Exception):
    """Nothing shows whether a certificate was revoked."""


class Claim:
    """What a statement says of one certificate: from when it is revoked and why, or that it is not."""

    def __init__(self, begins, until, entry, usable):
        self.begins, self.until, self.entry, self.usable = begins, until, entry, usable


class List:
    """A certificate revocation list that was read."""

    def __init__(self, encoding):
        self.encoding = encoding
        outer = der.Reader(der.read(encoding).expect(der.SEQUENCE).content)
        body = outer.next(der.SEQUENCE)
        self._signed, self._algorithm = body.encoding, outer.next(der.SEQUENCE)
        self._signature = der.bits(outer.next())
        fields = der.Reader(body.content)
        require(fields.next().integer() == 1, "a list of another version")
        require(fields.next(der.SEQUENCE).encoding == self._algorithm.encoding, "two signature algorithms")
        read_algorithm(self._algorithm)
        self.issuer = read_name(fields.next())
        self.begins = moment_of(fields.next())
        until = fields.maybe(der.GENERALIZED_TIME) or fields.maybe(_UTC_TIME)
        self.until = moment_of(until) if until else None
        self._entries, self._usable, self._expired = {}, True, None
        entries = fields.maybe(der.SEQUENCE)
        for entry in der.Reader(entries.content).all(der.SEQUENCE) if entries else []:
            self._read_entry(der.Reader(entry.content))
        extensions = fields.maybe(0xA0)
        if extensions:
            self._read_extensions(der.first(extensions.content))

    def _read_extensions(self, node):
        for name, critical, value, repeated in read_extensions(node):
            if name == _NUMBER:
                der.first(value).integer()
            elif name == _AUTHORITY_KEY:
                check_key_identifier(value, critical)
            if name in (_DELTA, _DISTRIBUTION_POINT) or critical or repeated:
                self._usable = False
            elif name == _EXPIRED:
                self._expired = self._date(value)

    def _date(self, value):
        """A date in an extension; None, and the list cannot be used, if it is none."""
        try:
            return moment_of(der.read(value).expect(der.GENERALIZED_TIME))
        except Refused:
            self._usable = False
            return None

    def _read_entry(self, fields):
        serial, since, reason = fields.next().integer(), moment_of(fields.next()), None
        extensions = fields.maybe(der.SEQUENCE)
        for name, critical, value, repeated in read_extensions(extensions) if extensions else []:
            if name == _REASON_CODE:
                reason = int.from_bytes(der.first(value).expect(der.ENUMERATED).content, "big", signed=True)
            elif name == _INVALIDITY_DATE and (date := self._date(value)) is not None:
                since = min(since, date)
            if name == _CERTIFICATE_ISSUER or repeated or (critical and name not in (_REASON_CODE, _INVALIDITY_DATE)):
                self._usable = False
        if reason == _REMOVE_FROM_CRL or serial in self._entries:
            self._usable = False
        self._entries[serial] = (since, reason)

    def about(self, certificate, issuer):
        if self.issuer != issuer.subject:
            return None
        entry = self._entries.get(certificate.serial)
        end = certificate.not_after
        dropped = entry is None and end < self.begins and (self._expired is None or self._expired > end)
        return Claim(self.begins, self.until, entry, self._usable and not dropped)

    def is_signed_by(self, issuer):
        return issuer.is_ca() and issuer.may(6) and is_signed(issuer, self._algorithm, self._signed, self._signature)


class Response:
    """An OCSP response that was read."""

    def __init__(self, encoding):
        require(len(encoding) <= _MOST_RESPONSE, "a response that is too long")
        self.encoding = encoding
        outer = der.Fields(der.read(encoding))
        require(outer.next(der.ENUMERATED).content == b"\0", "the responder did not answer")
        wrapped = der.Fields(outer.next(0xA0).explicit())
        outer.end()
        require(wrapped.next().oid() == _BASIC, "another kind of response")
        basic = der.Fields(der.read(wrapped.next(der.OCTET_STRING).content))
        wrapped.end()
        data = basic.next(der.SEQUENCE)
        self._signed, self._algorithm = data.encoding, basic.next(der.SEQUENCE)
        algorithm_name(self._algorithm)
        self._signature = _bits(basic.next(der.BIT_STRING))
        certificates = basic.maybe(0xA0)
        basic.end()
        members = certificates.explicit().expect(der.SEQUENCE).children if certificates else []
        self._certificates = [child.expect(der.SEQUENCE).encoding for child in members][:_MOST_RESPONDERS]
        self._read_data(der.Fields(data))

    def _read_data(self, fields):
        responder = fields.next()
        require(responder.tag in (0xA1, 0xA2), "no responder")
        inner = responder.explicit()
        self._name = inner.expect(der.SEQUENCE).encoding if responder.tag == 0xA1 else None
        self._key = inner.expect(der.OCTET_STRING).content if responder.tag == 0xA2 else None
        require(self._key is None or len(self._key) == 20, "no hash of a key")
        self._produced = _whole_moment(fields.next())
        answers = fields.next(der.SEQUENCE).children
        require(answers, "a response without an answer")
        self._answers = [_Answer(der.Fields(child)) for child in answers]
        self._usable = not any(critical or repeated for _, critical, _, repeated in _extensions(fields))
        fields.end()

    def about(self, certificate, issuer):
        named = [answer for answer in self._answers if answer.names(certificate, issuer)]
        if not named:
            return None
        answer = named[0]
        usable = len(named) == 1 and self._usable and answer.usable and answer.begins <= self._produced + _SKEW
        end = certificate.not_after
        forgotten = answer.entry is None and end < answer.begins and (answer.archive is None or answer.archive > end)
        return Claim(answer.begins, answer.until, answer.entry, usable and not forgotten)

    def is_signed_by(self, issuer):
        signer = issuer if self._is_by(issuer) else self._responder(issuer)
        return signer is not None and is_signed(signer, self._algorithm, self._signed, self._signature)

    def _is_by(self, certificate):
        if self._name is not None:
            return self._name == certificate.subject
        return self._key == hashlib.sha1(certificate.key_bits()).digest()

    def _responder(self, issuer):
        """The certificate that the issuer made for the responder; None if there is none."""
        for encoding in self._certificates:
            try:
                certificate = Certificate(encoding)
            except Refused:
                continue
            if self._is_by(certificate):
                return certificate if self._is_delegated(certificate, issuer) else None
        return None

    def _is_delegated(self, certificate, issuer):
        return (
            certificate.issuer == issuer.subject
            and _EKU_OCSP_SIGNING in (certificate.purposes() or [])
            and certificate.extension(_NO_CHECK) == b"\x05\x00"
            and certificate.may(0)
            and certificate.is_valid_at(self._produced)
            and bool(between([certificate]))
            and issuer.is_ca()
            and is_signed(issuer, certificate.algorithm, certificate.signed, certificate.signature)
            and verify_path(certificate, (), issuer, "any", None)
        )


class _Answer:
    """What a response says of one certificate."""

    def __init__(self, fields):
        name = der.Fields(fields.next(der.SEQUENCE))
        self._hash = _HASHES.get(algorithm_name(name.next(der.SEQUENCE)))
        self._issuer, self._key = name.next(der.OCTET_STRING).content, name.next(der.OCTET_STRING).content
        self._serial = name.next().integer()
        name.end()
        status = fields.next()
        require(status.tag in (0x80, 0xA1, 0x82), "no status")
        self.entry = _revoked(status) if status.tag == 0xA1 else None
        require(self.entry or not status.content, "a status with content")
        self.usable = status.tag != 0x82
        self.begins, until = _whole_moment(fields.next()), fields.maybe(0xA0)
        self.until, self.archive = _whole_moment(until.explicit()) if until else None, None
        for extension in _extensions(fields):
            self._take(*extension)
        fields.end()
        if self.entry and self.entry[1] == _REMOVE_FROM_CRL:
            self.usable = False

    def _take(self, name, critical, value, repeated):
        if critical or repeated or name == _CERTIFICATE_ISSUER:
            self.usable = False
        elif name == _ARCHIVE_CUTOFF or name == _INVALIDITY_DATE and self.entry:
            try:
                self._take_date(name, moment_of(der.read(value).expect(der.GENERALIZED_TIME)))
            except Refused:
                self.usable = False

    def _take_date(self, name, date):
        if name == _ARCHIVE_CUTOFF:
            self.archive = date
        else:
            self.entry = (min(self.entry[0], date), self.entry[1])

    def names(self, certificate, issuer):
        if self._hash is None or self._serial != certificate.serial:
            return False
        name, key = (hashlib.new(self._hash, data).digest() for data in (certificate.issuer, issuer.key_bits()))
        return (self._issuer, self._key) == (name, key)


def _revoked(node):
    """From when a certificate is revoked, and why."""
    children = node.children
    require(1 <= len(children) <= 2, "no revocation")
    reason = None
    if len(children) == 2:
        reason = int.from_bytes(children[1].expect(0xA0).explicit().expect(der.ENUMERATED).content, "big")
    return _whole_moment(children[0]), reason


def _whole_moment(node):
    """A GeneralizedTime in whole seconds."""
    return moment_of(node.expect(der.GENERALIZED_TIME))


def _extensions(fields):
    wrapped = fields.maybe(0xA1)
    if wrapped is None:
        return []
    found = read_extensions(wrapped.explicit(), strict=True)
    require(found, "extensions without a member")
    return found


def _bits(node):
    require(node.content[:1] == b"\0", "bits that are not used")
    return node.content[1:]


def algorithm_name(node):
    """An algorithm's object identifier; None if it has parameters other than NULL."""
    fields = der.Reader(node.content)
    name, parameters = fields.next().name(), [item.encoding for item in fields.all()]
    require(len(parameters) <= 1, "an algorithm with more than parameters")
    return name if parameters in ([], [b"\x05\x00"]) else None


def is_signed(signer, algorithm, message, signature):
    """Whether a certificate's key made a signature, by an algorithm that is accepted."""
    name, parameters = read_algorithm(algorithm)
    if name == _RSA_PSS:
        raise keys.Unsupported("statements on revocation, or certificates, that are signed with RSA-PSS")
    kind, digest = _SIGNATURES.get(name, (None, None)) if parameters is None or parameters.tag == der.NULL else (None, None)
    if kind is None or kind != signer.key_algorithm()[0]:
        return False
    if kind == _ED25519:
        return openssl.verify_ed25519(signer.spki, message, signature)
    return openssl.verify_digest(signer.spki, message, signature, digest)


@functools.cache
def read(kind, encoding):
    """A statement, or None for what is none."""
    try:
        return List(encoding) if kind == "crl" else Response(encoding)
    except Refused:
        return None


class Statements:
    """What the reader gave, and what the records up to now carry."""

    def __init__(self, reader, effort):
        self._at, self._grace, self._effort = reader.at, reader.grace, effort
        self._own, self._carried, self._seen = reader.statements, [], set()
        self._size, self._full = 0, False

    def carry(self, record):
        """Takes in what a record carries."""
        for kind, value in record.revocations:
            if self._full or value in self._seen:
                continue
            self._full = len(self._seen) == _MOST_CARRIED or self._size + len(value) > _MOST_CARRIED_BYTES
            if self._full:
                return
            self._seen.add(value)
            self._size += len(value)
            self._carried.append((kind, value))

    def revoked(self, certificate, issuer, independent):
        """From when a certificate is revoked; None if it is not. Raises Unknown."""
        if self._at is None:
            raise Unknown
        counts = []
        for claim, statement, is_carried in self._claims(certificate, issuer, independent):
            if counts and claim.begins < counts[0].begins:
                break
            if self._is_usable(claim, is_carried, independent) and self._is_signed(statement, issuer):
                counts.append(claim)
        if not counts or any(claim.entry != counts[0].entry for claim in counts):
            raise Unknown
        return counts[0].entry and counts[0].entry[0]

    def _claims(self, certificate, issuer, independent):
        given = [(statement, False) for statement in self._own]
        if independent is not None:
            given += [(statement, True) for pair in self._carried if (statement := read(*pair))]
        found = [(statement.about(certificate, issuer), statement, carried) for statement, carried in given]
        return sorted((item for item in found if item[0]), key=lambda item: -item[0].begins)

    def _is_usable(self, claim, is_carried, independent):
        if not claim.usable:
            return False
        if is_carried:
            return claim.begins <= self._at + _SKEW and claim.begins > independent + self._grace
        return claim.begins <= self._at and claim.until is not None and claim.until >= self._at

    def _is_signed(self, statement, issuer):
        try:
            self._effort.once((statement.encoding, issuer.encoding))
        except Spent as err:
            raise Unknown from err  # an older statement must not count in the place of this one
        return statement.is_signed_by(issuer)
