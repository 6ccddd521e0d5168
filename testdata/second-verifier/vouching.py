"""Whether a CA of the trust file vouches for a signer's key: section "Signers' certificates" of docs/format.md."""

import re
import urllib.parse

import keys
from canonical import Refused, require, tried
from certificates import Certificate, Spent, between, verify_path, ways
from revocation import Unknown, is_signed
from shapes import digest_of, is_name
from trust import ROLES

_MOST = 16
_EKU_DOCUMENT_SIGNING, _EKU_ANY = "1.3.6.1.5.5.7.3.36", "2.5.29.37.0"
_NO_REV_AVAIL, _AUTHORITY_INFO = "2.5.29.56", "1.3.6.1.5.5.7.1.1"
_SAYS_WHERE = ("2.5.29.31", "2.5.29.46")
_OCSP = "1.3.6.1.5.5.7.48.1"
_SHORT = 7 * 24 * 60 * 60
_ALGORITHMS = {keys.RSA: "RS256", keys.EC: "ES256", keys.ED25519: "Ed25519"}
# The best answer of several CAs and certificates counts.
_ORDER = (None, "revoked", "revocation", "effort", "actor", "certificate")
_PREFIX = "urn:jurat:"


class Given:
    """The certificates of a record for one of its signers."""

    def __init__(self, record, signer):
        self.is_refused = len(record.certificates) > _MOST
        self.signers, self.between, self.spki, self.algorithm = [], [], None, None
        if self.is_refused:
            return
        readable = list(filter(None, (tried(Certificate, item) for item in record.certificates)))
        self.signers = [item for item in readable if digest_of(item.spki) == signer["key_id"]]
        self.between = between([item for item in readable if item.is_ca()])
        if self.signers:
            self._read_key()

    def _read_key(self):
        self.spki = self.signers[0].spki
        self.algorithm = _ALGORITHMS.get(self.signers[0].key_algorithm[0])
        try:
            require(self.algorithm, "a key of another kind")
            keys.check_key(self.algorithm, self.spki)
        except Refused:
            self.is_refused = True


class Judge:
    """Asks the CAs of the trust file."""

    def __init__(self, trust, effort, statements):
        self._cas, self._effort, self._statements = trust.cas, effort, statements

    def answer(self, record, given, times, findings):
        """The rule that the best answer breaks (None: a CA vouches), and that CA."""
        found = []
        if times.by is not None:
            cas = [ca for ca in self._cas if record.role in ca.roles]
            found = [(self._by(ca, certificate, given, record, times), ca) for ca in cas for certificate in given.signers]
        (rule, ends), ca = min(found, key=lambda item: _ORDER.index(item[0][0]), default=(("certificate", ()), None))
        for end in ends:
            times.within(end, findings, "authentication")
        return rule, ca

    def _by(self, ca, certificate, given, record, times):
        """What one CA says of one certificate: the rule, and when what it rests on ended."""
        root = ca.certificate
        try:
            others = self._effort.candidates(certificate, given.between, root.encoding, times.by)
        except Spent:
            return "effort", ()
        paths = [way for way in ways(certificate, others, root) if _is_path(way)] if others is not None else []
        is_for_documents = not certificate.says_ca() and certificate.may(0) and _EKU_DOCUMENT_SIGNING in (certificate.purposes() or [])
        if not paths or not is_for_documents:
            return "certificate", ()
        if (rule := _names(certificate, record)) is not None:
            return rule, ()
        excludes = lambda ca: ca.purposes() is not None and not {_EKU_ANY, _EKU_DOCUMENT_SIGNING} & set(ca.purposes())
        paths = [way for way in paths if all(item.not_before <= times.earliest for item in way) and not any(map(excludes, way[1:]))]
        answers = [(self._unrevoked(ca, way, times.independent), [item.not_after for item in way]) for way in paths]
        return min(answers, key=lambda item: _ORDER.index(item[0]), default=("certificate", ()))

    def _unrevoked(self, ca, way, independent):
        found = None
        if ca.revocation == "none":
            return None
        for certificate, issuer in zip(way, way[1:]):
            if ca.revocation == "short" and _is_short_lived(certificate):
                continue
            try:
                since = self._statements.revoked(certificate, issuer, independent)
            except Unknown:
                found = "revocation"
                continue
            if since is not None and (independent is None or independent >= since):
                return "revoked"
        return found


def _is_path(way):
    """Whether a way is a path. All of it is valid at the time."""
    *below, root = way
    if not all(item.is_usable() for item in way[1:]):
        return False
    signed = all(is_signed(issuer, item.algorithm, item.signed, item.signature) for item, issuer in zip(way, way[1:]))
    return signed and verify_path(below[0], below[1:], root, "any", None)


def identity(role, name):
    """The URI of an actor."""
    return f"{_PREFIX}{role}:{urllib.parse.quote(name, safe='-._~')}"


def _names(certificate, record):
    """None if the certificate names the record's actor, and otherwise the rule."""
    named = [uri for uri in certificate.uris() if uri[: len(_PREFIX)].lower() == _PREFIX]
    if len(named) != 1:
        return "certificate"
    if named[0] == identity(record.role, record.actor):
        return None
    role, _, escaped = named[0].removeprefix(_PREFIX).partition(":")
    try:
        name = urllib.parse.unquote(escaped, errors="strict")
    except UnicodeDecodeError:
        return "certificate"
    is_one = role in ROLES and not re.search("%(?![0-9A-Fa-f]{2})", escaped) and is_name(name) and identity(role, name) == named[0]
    return "actor" if is_one else "certificate"


def _is_short_lived(certificate):
    return (
        certificate.extension(_NO_REV_AVAIL) == b"\x05\x00"
        and certificate.not_after - certificate.not_before <= _SHORT
        and not certificate.says_ca()
        and not any(certificate.extension(name) for name in _SAYS_WHERE)
        and _OCSP not in certificate.access_methods(_AUTHORITY_INFO)
    )
