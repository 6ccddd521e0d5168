"""Statements of SCITT and their receipts: section "SCITT statements" of docs/format.md."""

import hashlib

import certificates
import cose
import files
import keys
import log
import payload as payloads
import report
from canonical import Refused, parse
from cose import Unsupported, Wrong
from shapes import require

_CHAIN, _THUMBPRINT, _RECEIPTS, _STRUCTURE, _PROOFS = 33, 34, 394, 395, 396
_ABOUT, _RECORD, _ENTRY = -70001, -70002, -70003
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
        self.entry = self.message.unprotected.get(_ENTRY)
        require(self.entry is None or isinstance(self.entry, bytes), "an entry that is no bytes")
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

    def growth(self):
        if self.structure != 1 or len(self.consistency) != 1 or self.message.payload is None:
            raise Unsupported("no single proof of consistency, or no newer root")
        proof = _Proof(self.consistency[0])
        require(1 <= proof.first < proof.second <= _MAX_SIZE and len(self.message.payload) == 32, "no two sizes")
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
        self.record = unprotected.get(_RECORD)
        require(self.record is None or isinstance(self.record, bytes), "a record that is no bytes")
        self.is_own = _RECORD in unprotected or protected.get(_ABOUT) is not None
        self.issuer, self.subject = self.message.claims()
        self._content(protected)
        found = unprotected.get(_RECEIPTS)
        require(_RECEIPTS not in unprotected or isinstance(found, list) and 1 <= len(found) <= _MAX_RECEIPTS, "no receipts")
        require(all(isinstance(item, bytes) for item in found or []), "a receipt that is no bytes")
        self.receipts = [Receipt(item) for item in found or []]

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
        """The record that it was made of. Raises Refused."""
        require(self.record is not None, "no record")
        opened = files.open_record(self.record)
        [record] = opened.records
        require(record.message == self.payload and record.id == self.subject, "another record")
        require(self.type.encode() == TYPE and not self.is_digest, "another content type")
        require(self.message.protected.get(_ABOUT) == _SENTENCES, "other sentences")
        return opened


def damaged(data, trust, reason):
    """The report on a statement of a record that does not open; None: it is none of those."""
    if TYPE not in data:
        return None
    found = report.damaged("record", trust, reason)
    answer = {"guarantee": "envelope", "status": report.NOT_PROVED, "reason": "the file does not open"}
    return found | {"guarantees": [*found["guarantees"], answer]}


class _Signed:
    """A root that a key signed."""

    def __init__(self, algorithm, spki, issuer, size, root, is_log):
        self.key, self.issuer, self.size, self.root, self.is_log = (algorithm, spki), issuer, size, root, is_log


def _receipts(statement, trust, record, entry):
    """The status of each receipt, and what was signed."""
    answers, signed = [None] * len(statement.receipts), []
    for grows in (False, True):
        for number, receipt in enumerate(statement.receipts):
            if receipt.is_consistency == grows:
                answers[number], found = _grown(receipt, signed, record) if grows else _included(receipt, statement, trust, record, entry)
                signed += [found] if found else []
    return answers, signed


def _included(receipt, statement, trust, record, entry):
    try:
        proof = receipt.proof()
    except (Refused, Unsupported) as err:
        return report.REFUTED if isinstance(err, Refused) else report.NOT_PROVED, None
    known = next((known for known in trust.logs if hashlib.sha256(known.spki).digest() == receipt.message.key_id()), None)
    if known is not None and record is not None:
        return _by_log(receipt, proof, known, record, entry)
    for key in trust.statement_keys("service", receipt.issuer):
        for leaf in statement.leaves():
            try:
                root = receipt.check(key.algorithm, key.spki, leaf)
            except Unsupported:
                return report.NOT_PROVED, None
            except (Wrong, Refused):
                continue
            if key.revoked is not None:
                return report.NOT_PROVED, None
            return report.PROVED, _Signed(key.algorithm, key.spki, receipt.issuer, proof.first, root, False)
    return report.NOT_PROVED, None


def _by_log(receipt, proof, known, record, entry):
    try:
        beside = parse(receipt.entry or b"")
        require(isinstance(beside, dict) and beside.get("payload") == record.digest and beside.get("signatures") == record.raw_signatures, "another record")
        require(entry is None or entry == receipt.entry, "other counts")
        require(receipt.issuer == issuer_of("log", known.name), "another issuer")
        root = receipt.check("Ed25519", known.spki, log.leaf_hash(receipt.entry))
    except Unsupported:
        return report.NOT_PROVED, None
    except (Wrong, Refused):
        return report.REFUTED, None
    return report.PROVED, _Signed("Ed25519", known.spki, receipt.issuer, proof.first, root, True)


def _grown(receipt, signed, record):
    try:
        proof = receipt.growth()
    except (Refused, Unsupported) as err:
        return report.REFUTED if isinstance(err, Refused) else report.NOT_PROVED, None
    status = report.NOT_PROVED
    for before in signed:
        if before.size != proof.first or before.issuer != receipt.issuer:
            continue
        root = receipt.message.payload
        try:
            if not log.grows(before.root, proof.first, root, proof.second, proof.path):
                raise Wrong("a path that leads elsewhere")
            receipt.message.check(*before.key, root)
        except Unsupported:
            status = report.NOT_PROVED
        except (Wrong, Refused):
            named = hashlib.sha256(before.key[1]).digest() == receipt.message.key_id()
            status = report.REFUTED if before.is_log and named and record is not None else report.NOT_PROVED
        else:
            return report.PROVED, _Signed(*before.key, receipt.issuer, proof.second, root, before.is_log)
    return status, None


def check_own(statement, record, trust, findings):
    """Who exported the record, and what the receipts prove."""
    _check_exporter(statement, record, trust, findings)
    answers, signed = _receipts(statement, trust, record, log.entry(record) if record.log else None)
    for answer in answers:
        if answer == report.REFUTED:
            findings.refute("envelope", "receipt")
    for one in signed:
        tree = findings.log
        if one.is_log and tree is not None and issuer_of("log", tree.origin) == one.issuer and tree.size == one.size and tree.root != one.root:
            findings.doubt("order", "history")


def _check_exporter(statement, record, trust, findings):
    key = next((key for key in trust.keys.values() if bytes.fromhex(key.id.removeprefix("sha256:")) == statement.key_id), None)
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
    answers, _ = _receipts(statement, trust, None, None)
    if report.REFUTED in answers:
        findings.refute("order", "receipt")
    elif not included:
        findings.doubt("order", "no-receipt")
    elif not any(answer == report.PROVED and not receipt.is_consistency for answer, receipt in zip(answers, statement.receipts)):
        findings.doubt("order", "receipt")
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
