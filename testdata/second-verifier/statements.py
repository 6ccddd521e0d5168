"""Statements of SCITT: section "SCITT statements" of docs/format.md. Their receipts change no answer, and are not read."""

import hashlib

import certificates
import cose
import files
import keys
import payload as payloads
import report
from canonical import Refused
from cose import Unsupported, Wrong
from shapes import require

_CHAIN, _THUMBPRINT = 33, 34
_ABOUT, _RECORD = -70001, -70002
TYPE = "application/vnd.jurat.payload+json"
_SHA256 = -16
_MAX_CERTIFICATES = 16
_SENTENCES = (
    "The COSE signature over this payload is that of whoever exported this record, and says only that they did. Who said what is shown by the record's own "
    "signatures, in the unprotected header parameter -70002: each was made over this payload, and is no COSE signature. A receipt of the log is about the "
    "record's entry in the log, which is beside its proof in the parameter -70003, and not about this statement."
)
_PLAIN = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~$&+:=@"


def is_statement(data):
    return data.startswith(b"\xd2\x84")


def issuer_of(role, name):
    return f"urn:jurat:{role}:" + "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in name.encode("utf-8"))


class NoRecord(Exception):
    """The record of a statement is not in it: anybody can take it out or replace it."""


class Statement:
    def __init__(self, data):
        cose.check_size(data)
        self.message = cose.Sign1(data)
        protected, unprotected = self.message.protected, self.message.unprotected
        self.payload, self.key_id = self.message.payload, self.message.key_id()
        require(self.payload is not None, "a detached payload")
        record = unprotected.get(_RECORD)
        self.record = record if isinstance(record, bytes) else None
        self.is_own = protected.get(_ABOUT) is not None
        self.issuer, self.subject = self.message.claims()
        self.type = protected.get(3)

    def certificate(self):
        """The first certificate that the protected header names, or None; whether there is one that cannot be read."""
        value = self.message.protected.get(_CHAIN)
        if _CHAIN not in self.message.protected:
            return None, False
        if isinstance(value, list) and 2 <= len(value) <= _MAX_CERTIFICATES:
            value = value[0]
        if not isinstance(value, bytes):
            return None, True
        try:
            return certificates.Certificate(value), False
        except Refused:
            return None, True

    def against_certificate(self, spki):
        """The rule that the certificate of the protected header breaks, if a key signed; None: it breaks none."""
        named, is_unread = self.certificate()
        if named is None:
            return "unsupported" if is_unread else None
        thumbprint = self.message.protected.get(_THUMBPRINT)
        if isinstance(thumbprint, list) and len(thumbprint) == 2 and thumbprint[0] == _SHA256 and isinstance(thumbprint[1], bytes):
            if thumbprint[1] != hashlib.sha256(named.encoding).digest():
                return "signature"
        return None if named.spki == spki else "signature"

    def against_itself(self):
        """Whether the certificate of the protected header is that of another key than the one that signed."""
        named, _ = self.certificate()
        if named is None:
            return False
        for algorithm in ("ES256", "Ed25519", "RS256"):
            try:
                keys.check_key(algorithm, named.spki)
                self.message.check(algorithm, named.spki, self.payload)
            except Wrong:
                return True
            except Refused:
                continue
            except Unsupported:
                return False
            return self.against_certificate(named.spki) == "signature"
        return False

    def open_record(self):
        """The record that it was made of. Raises NoRecord, or Refused."""
        try:
            require(self.record is not None, "no record")
            opened = files.open_record(self.record)
            [record] = opened.records
            require(record.message == self.payload, "another record")
        except Refused as err:
            raise NoRecord(str(err)) from err
        require(record.id == self.subject, "another subject")
        require(self.type == TYPE, "another content type")
        require(self.message.protected.get(_ABOUT) == _SENTENCES, "other sentences")
        return opened


def damaged(trust, reason, status=report.REFUTED, rule="form"):
    """The report on a statement of a record that does not open."""
    found = report.damaged("record", trust, reason) | {"outcome": status}
    found["guarantees"][0] |= {"status": status, "rule": rule}
    answer = {"guarantee": "envelope", "status": report.NOT_PROVED, "reason": "the file does not open"}
    return found | {"guarantees": [*found["guarantees"], answer]}


def without_record(statement, trust, reason):
    """The report on a statement of a record that is not in it."""
    key = _exporter(statement, trust)
    try:
        if key is not None:
            statement.message.check(key.algorithm, key.spki, statement.payload)
    except Wrong:
        return damaged(trust, reason)
    except (Unsupported, Refused):
        pass
    return damaged(trust, reason, report.NOT_PROVED, "no-record")


def _exporter(statement, trust):
    """The key of the trust file that a statement names."""
    return next((key for key in trust.keys.values() if bytes.fromhex(key.id.removeprefix("sha256:")) == statement.key_id), None)


def check_own(statement, record, trust, findings):
    key = _exporter(statement, trust)
    if key is None:
        (findings.refute if statement.against_itself() else findings.doubt)("envelope", "signature" if statement.against_itself() else "unknown-key")
        return
    try:
        statement.message.check(key.algorithm, key.spki, statement.payload)
    except Unsupported:
        findings.doubt("envelope", "unsupported")
        return
    except (Wrong, Refused):
        findings.refute("envelope", "signature")
        return
    rule = statement.against_certificate(key.spki)
    if rule:
        (findings.refute if rule == "signature" else findings.doubt)("envelope", rule)
    if statement.issuer != issuer_of(key.role, key.name):
        findings.refute("envelope", "actor")
    elif key.role != "operator" and (key.role, key.name) != (payloads.role_of(record.payload), record.actor):
        findings.refute("envelope", "actor")
    if key.revoked is not None:
        findings.doubt("envelope", "revoked")
    elif key.not_after is not None:
        findings.doubt("envelope", "validity")
    if key.with_keys:
        findings.doubt("envelope", "second-signature")
