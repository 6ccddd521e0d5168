"""Statements of SCITT and their receipts: section "SCITT statements" of docs/format.md."""

import hashlib

import certificates
import cose
import files
import keys
import log
import payload as payloads
import report
from canonical import Refused
from cose import Unsupported, Wrong
from shapes import require

_CHAIN, _THUMBPRINT, _RECEIPTS, _STRUCTURE, _PROOFS = 33, 34, 394, 395, 396
_ABOUT, _RECORD = -70001, -70002
TYPE = b"application/vnd.jurat.payload+json"
_SHA256 = -16
_MAX_RECEIPTS, _MAX_CERTIFICATES, _MAX_SIZE, _MAX_PATH = 16, 16, 2**53 - 1, 63
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


class _Proof:
    """A proof of inclusion or of consistency: two numbers and a path."""

    def __init__(self, data):
        value = cose.decode(data)
        require(isinstance(value, list) and len(value) == 3, "no proof")
        first, second, path = value
        require(type(first) is int and type(second) is int and isinstance(path, list), "no proof")
        require(len(path) <= _MAX_PATH and all(isinstance(node, bytes) and len(node) == 32 for node in path), "no path")
        self.first, self.second, self.path = first, second, path


class Receipt:
    def __init__(self, data):
        self.message = cose.Sign1(data)
        self.issuer = self.message.claims()[0]
        self.structure = self.message.protected.get(_STRUCTURE, 0)
        require(type(self.structure) is int, "a structure that is no number")
        self.inclusion, self.consistency = [], []
        if self.structure == 1:
            proofs = self.message.unprotected.get(_PROOFS)
            require(isinstance(proofs, dict), "no proofs")
            self.inclusion, self.consistency = _proofs(proofs, -1), _proofs(proofs, -2)
        self.is_consistency = not self.inclusion and bool(self.consistency)

    def proof(self):
        """The proof of inclusion. Raises Unsupported, or Refused if it is malformed."""
        if self.structure != 1 or len(self.inclusion) != 1:
            raise Unsupported("no single proof of inclusion")
        proof = _Proof(self.inclusion[0])
        require(1 <= proof.first <= _MAX_SIZE and 0 <= proof.second < proof.first, "no place in a tree")
        return proof

    def check(self, algorithm, spki, leaf):
        """The root that a key signed."""
        proof = self.proof()
        root = log.root_of(leaf, proof.second, proof.first, proof.path)
        require(root is not None, "a path of another length")
        if self.message.payload is not None and self.message.payload != root:
            raise Wrong("another root")
        self.message.check(algorithm, spki, root)
        return root


class _Unread:
    """A receipt that cannot be read: nobody issued it."""

    issuer, is_consistency = None, False


def _receipt(data):
    try:
        require(isinstance(data, bytes), "a receipt that is no bytes")
        return Receipt(data)
    except Refused:
        return _Unread()


class NoRecord(Exception):
    """The record of a statement is not in it: anybody can take it out or replace it."""


def _proofs(proofs, kind):
    if kind not in proofs:
        return []
    found = proofs[kind]
    require(isinstance(found, list) and found and isinstance(found[0], bytes), "proofs that are none")
    return found


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
        self._content(protected)
        found = unprotected.get(_RECEIPTS)
        self.receipts = [_receipt(item) for item in (found if isinstance(found, list) else [])[:_MAX_RECEIPTS]]

    def _content(self, protected):
        self.is_digest = 258 in protected
        if self.is_digest:
            require(3 not in protected, "a content type and a digest")
            require(protected[258] != _SHA256 or len(self.payload) == 32, "no digest")
        kind = protected.get(259 if self.is_digest else 3)
        require(kind is None or isinstance(kind, str) or type(kind) is int, "no content type")
        self.type = "" if kind is None else str(kind)

    def leaves(self):
        """The hashes that a service may have as the leaf of this statement."""
        bare = {name: value for name, value in self.message.unprotected.items() if name != _RECEIPTS}
        for header in ({}, bare):
            data = self.message.again(header)
            yield log.leaf_hash(data)
            yield log.leaf_hash(hashlib.sha256(data).digest())

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
        require(self.type.encode() == TYPE and not self.is_digest, "another content type")
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


def _is_included(receipt, statement, trust):
    """Whether a receipt of inclusion holds. One that does not refutes nothing: no signature of the statement covers it."""
    for key in trust.statement_keys("service", receipt.issuer):
        for leaf in statement.leaves():
            try:
                receipt.check(key.algorithm, key.spki, leaf)
            except Unsupported:
                return False
            except (Wrong, Refused):
                continue
            return key.revoked is None
    return False


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


def verify_others(statement, trust, before, rate, reader):
    """The report on a statement that has no record."""
    findings = report.Findings("statement", ("content", "authentication", "non_repudiation", "time", "order"))
    if before is not None:
        findings.ask("before")
    _check_issued(statement, trust, findings)
    included = [receipt for receipt in statement.receipts if not receipt.is_consistency]
    if not any(_is_included(receipt, statement, trust) for receipt in included):
        findings.doubt("order", "receipt" if included else "no-receipt")
    for guarantee in ("time", "before"):
        if guarantee in findings.asked:
            findings.doubt(guarantee, "no-time")
    findings.doubt("non_repudiation", "holder")
    return findings.report(trust, reader, rate)


def _check_issued(statement, trust, findings):
    named, unsupported = False, False
    for key in trust.statement_keys("issuer", statement.issuer):
        try:
            statement.message.check(key.algorithm, key.spki, statement.payload)
        except Wrong:
            pass
        except (Unsupported, Refused):
            unsupported = True
        else:
            rule = statement.against_certificate(key.spki)
            _both(findings, rule) if rule else None
            if not rule and key.revoked is not None:
                findings.doubt("authentication", "revoked")
            return
        named = named or key.is_named(statement.key_id)
    if unsupported:
        _both(findings, "unsupported")
    elif named or statement.against_itself():
        _both(findings, "signature")
    else:
        _both(findings, "unknown-key")


def _both(findings, rule):
    for guarantee in ("content", "authentication"):
        (findings.refute if rule == "signature" else findings.doubt)(guarantee, rule)
