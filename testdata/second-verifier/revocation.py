"""What CAs said about the revocation of certificates: section "Revocation" of docs/format.md."""

from collections import namedtuple

import der
import keys
from canonical import require, tried
from certificates import Spent, check_key_identifier, moment_of, read_algorithm, read_extensions, read_name

GRACE = 24 * 60 * 60
_REMOVE_FROM_CRL = 8

_REASON_CODE, _INVALIDITY_DATE, _CERTIFICATE_ISSUER = "2.5.29.21", "2.5.29.24", "2.5.29.29"
_NUMBER, _AUTHORITY_KEY = "2.5.29.20", "2.5.29.35"
_DELTA, _DISTRIBUTION_POINT, _EXPIRED = "2.5.29.27", "2.5.29.28", "2.5.29.60"
_RSA_PSS = "1.2.840.113549.1.1.10"


class Unknown(Exception):
    """Nothing shows whether a certificate was revoked."""


# What a list says of one certificate: from when it is revoked and why, or that it is not.
Claim = namedtuple("Claim", "begins until entry usable")


class List:
    """A certificate revocation list that was read."""

    def __init__(self, encoding):
        self.encoding = encoding
        outer = der.Reader(der.read(encoding).expect(der.SEQUENCE).content)
        body = outer.next(der.SEQUENCE)
        self.signed, self.algorithm = body.encoding, outer.next(der.SEQUENCE)
        self.signature = der.bits(outer.next())
        fields = der.Reader(body.content)
        require(fields.next().integer() == 1, "a list of another version")
        require(fields.next(der.SEQUENCE).encoding == self.algorithm.encoding, "two signature algorithms")
        read_algorithm(self.algorithm)
        self.issuer = read_name(fields.next())
        self.begins = moment_of(fields.next())
        until = fields.maybe(der.GENERALIZED_TIME) or fields.maybe(der.UTC_TIME)
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
        date = tried(lambda: moment_of(der.read(value).expect(der.GENERALIZED_TIME)))
        self._usable &= date is not None
        return date

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


def is_signed(signer, algorithm, message, signature):
    """Whether a certificate's key made a signature, by an algorithm that is accepted."""
    name, parameters = read_algorithm(algorithm)
    if name == _RSA_PSS:
        raise keys.Unsupported("revocation lists, or certificates, that are signed with RSA-PSS")
    if parameters is not None and parameters.tag != der.NULL:
        return False
    if name == signer.key_algorithm[0] == keys.ED25519:
        return keys.verify_ed25519(signer.spki, message, signature)
    kind, digest = keys.SIGNATURES.get(name, (None, None))
    return kind == signer.key_algorithm[0] and keys.verify_digest(signer.spki, message, signature, digest)


class Lists:
    """The reader's lists."""

    def __init__(self, reader, effort):
        self._at, self._grace, self._effort, self._own = reader.at, reader.grace, effort, reader.lists

    def revoked(self, certificate, issuer, independent):
        """From when a certificate is revoked; None if it is not. Raises Unknown."""
        if self._at is None:
            raise Unknown
        counts, found = [], [(one.about(certificate, issuer), one) for one in self._own]
        for claim, one in sorted((item for item in found if item[0]), key=lambda item: -item[0].begins):
            if counts and claim.begins < counts[0].begins:
                break
            if self._is_usable(claim, independent) and self._is_signed(one, issuer):
                counts.append(claim)
        if not counts or any(claim.entry != counts[0].entry for claim in counts):
            raise Unknown
        return counts[0].entry and counts[0].entry[0]

    def _is_usable(self, claim, independent):
        if not claim.usable or claim.begins > self._at:
            return False
        is_late = independent is not None and claim.begins > independent + self._grace
        return is_late or claim.until is not None and claim.until >= self._at

    def _is_signed(self, one, issuer):
        try:
            self._effort.once((one.encoding, issuer.encoding))
        except Spent as err:
            raise Unknown from err  # an older list must not count in the place of this one
        return issuer.is_ca() and issuer.may(6) and is_signed(issuer, one.algorithm, one.signed, one.signature)
