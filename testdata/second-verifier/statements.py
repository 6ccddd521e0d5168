"""Statements of SCITT: section "SCITT statements" of docs/format.md. Their receipts change no answer, and are not read."""

import hashlib
import struct
import urllib.parse
from collections import namedtuple

import certificates
import der
import files
import keys
import report
from canonical import Refused, require, tried
from sigma import ORDER

_MAX_DEPTH, _MAX_VALUES, _MAX_FILE = 16, 10_000, 64 << 20
ALGORITHMS = {-7: "ES256", -8: "Ed25519"}
_ALG, _CRIT, _TYPE, _KEY_ID, _CLAIMS, _CHAIN, _THUMBPRINT = 1, 2, 3, 4, 15, 33, 34
_UNDERSTOOD = {1, 3, 4, 15, 395}
_ABOUT, _RECORD = -70001, -70002
TYPE = "application/vnd.jurat.payload+json"
_SHA256 = -16
_MAX_CERTIFICATES = 16
_SENTENCES = (
    "The COSE signature over this payload is that of whoever exported this record, and says only that they did. Who said what is shown by the record's own "
    "signatures, in the unprotected header parameter -70002: each was made over this payload, and is no COSE signature. A receipt of the log is about the "
    "record's entry in the log, which is beside its proof in the parameter -70003, and not about this statement."
)


class Unsupported(Exception):
    """What cannot be checked; it says nothing about whether it is valid."""


class Wrong(Exception):
    """A signature that is not the key's."""


class NoRecord(Exception):
    """The record of a statement is not in it: anybody can take it out or replace it."""


Tag = namedtuple("Tag", "number content")


class _Decoder:
    def __init__(self, data):
        self.data, self.at, self.values = data, 0, 0

    def value(self, depth=0):
        self.values += 1
        require(self.values <= _MAX_VALUES and depth <= _MAX_DEPTH, "CBOR: too many values, or too deep")
        first = self.take(1)[0]
        major, info = first >> 5, first & 31
        if major == 7:
            return self._simple(info)
        number = self._argument(info)
        if major in (0, 1):
            require(number < 2**63, "CBOR: an integer beyond 64 bits")
            return number if major == 0 else -1 - number
        if major == 2:
            return self.take(number)
        if major == 3:
            try:
                return self.take(number).decode("utf-8")
            except UnicodeDecodeError as err:
                raise Refused("CBOR: a text that is no UTF-8") from err
        if major == 6:
            return Tag(number, self.value(depth + 1))
        require(number <= min(len(self.data) - self.at, _MAX_VALUES), "CBOR: more values than bytes")
        if major == 4:
            return [self.value(depth + 1) for _ in range(number)]
        return self._map(number, depth)

    def _map(self, number, depth):
        found = {}
        for _ in range(number):
            key = self.value(depth + 1)
            require(isinstance(key, (int, str)) and not isinstance(key, bool), "CBOR: no key")
            require(key not in found, "CBOR: a key twice")
            found[key] = self.value(depth + 1)
        return found

    def take(self, number):
        require(number <= len(self.data) - self.at, "CBOR: it ends too early")
        self.at += number
        return self.data[self.at - number : self.at]

    def _argument(self, info):
        if info < 24:
            return info
        require(info <= 27, "CBOR: an indefinite length, or a reserved one")
        width = 1 << (info - 24)
        number = int.from_bytes(self.take(width), "big")
        require(number >= 24 if width == 1 else number >> (4 * width), "CBOR: longer than needed")
        return number

    def _simple(self, info):
        if info in (20, 21, 22):
            return {20: False, 21: True, 22: None}[info]
        require(info in (25, 26, 27), "CBOR: another simple value")
        return struct.unpack({25: ">e", 26: ">f", 27: ">d"}[info], self.take(1 << (info - 24)))[0]


def _in_der(raw):
    """A signature of P-256 as records have it, with the smaller s."""
    numbers = [int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big")]
    numbers[1] = min(numbers[1], ORDER - numbers[1]) if 0 < numbers[1] < ORDER else numbers[1]
    return der.sequence(b"".join(der.sequence(number.to_bytes(number.bit_length() // 8 + 1, "big"), der.INTEGER) for number in numbers))


def decode(data):
    decoder = _Decoder(data)
    value = decoder.value()
    require(decoder.at == len(data), "CBOR: bytes after the end")
    return value


def _head(major, number):
    if number < 24:
        return bytes([major << 5 | number])
    size = next(size for size in range(4) if number < 1 << (8 << size))
    return bytes([major << 5 | 24 + size]) + number.to_bytes(1 << size, "big")


def _signed(header, payload):
    """What a signature is over: the Sig_structure of RFC 9052, without external data."""
    return b"\x84" + _head(3, 10) + b"Signature1" + _head(2, len(header)) + header + _head(2, 0) + _head(2, len(payload)) + payload


class Statement:
    """An opened COSE_Sign1 with its claims. Nothing in it is verified."""

    def __init__(self, data):
        require(len(data) <= _MAX_FILE, "too long")
        value = decode(data)
        require(isinstance(value, Tag) and value.number == 18, "no COSE_Sign1 with its tag")
        parts = value.content
        require(isinstance(parts, list) and len(parts) == 4, "no array of four")
        self.header, unprotected, self.payload, self.signature = parts
        require(isinstance(self.header, bytes) and isinstance(unprotected, dict), "headers that are none")
        self.protected = decode(self.header) if self.header else {}
        require(isinstance(self.protected, dict), "a protected header that is no map")
        require(isinstance(self.payload, bytes), "a payload that is detached, or not bytes")
        require(isinstance(self.signature, bytes), "a signature that is none")
        claims, record = self.protected.get(_CLAIMS, {}), unprotected.get(_RECORD)
        require(isinstance(claims, dict), "claims that are no map")
        self.issuer, self.subject = (claims.get(name, "") for name in (1, 2))
        require(isinstance(self.issuer, str) and isinstance(self.subject, str), "a claim that is no text")
        self.record = record if isinstance(record, bytes) else None
        self.is_own = self.protected.get(_ABOUT) is not None

    def check(self, algorithm, spki):
        """Raises Wrong if the key did not sign, Unsupported if that cannot be known, Refused if the headers are none."""
        self._critical()
        require(_ALG in self.protected, "no algorithm")
        named = self.protected[_ALG]
        require(type(named) is int and named in ALGORITHMS, "another algorithm", Unsupported)
        require(ALGORITHMS[named] == algorithm, "another kind of key", Wrong)
        require(algorithm != "ES256" or len(self.signature) == 64, "a signature of another length", Wrong)
        signature = _in_der(self.signature) if algorithm == "ES256" else self.signature
        require(keys.is_valid(algorithm, spki, _signed(self.header, self.payload), signature), "the signature is not the key's", Wrong)

    def _critical(self):
        if _CRIT not in self.protected:
            return
        names = self.protected[_CRIT]
        require(isinstance(names, list) and names, "crit that is no list")
        for name in names:
            require(isinstance(name, (int, str)) and not isinstance(name, bool) and name in self.protected, "crit names what is not there")
            require(name in _UNDERSTOOD, "a critical parameter that is not known", Unsupported)


    def certificate(self):
        """The first certificate that the protected header names, or None; whether there is one that cannot be read."""
        value = self.protected.get(_CHAIN)
        if _CHAIN not in self.protected:
            return None, False
        if isinstance(value, list) and 2 <= len(value) <= _MAX_CERTIFICATES:
            value = value[0]
        named = tried(certificates.Certificate, value) if isinstance(value, bytes) else None
        return named, named is None

    def against_certificate(self, spki):
        """The rule that the certificate of the protected header breaks, if a key signed; None: it breaks none."""
        named, is_unread = self.certificate()
        if named is None:
            return "unsupported" if is_unread else None
        thumbprint = self.protected.get(_THUMBPRINT)
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
                self.check(algorithm, named.spki)
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
        require(self.protected.get(_TYPE) == TYPE, "another content type")
        require(self.protected.get(_ABOUT) == _SENTENCES, "other sentences")
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
            statement.check(key.algorithm, key.spki)
    except Wrong:
        return damaged(trust, reason)
    except (Unsupported, Refused):
        pass
    return damaged(trust, reason, report.NOT_PROVED, "no-record")


def _exporter(statement, trust):
    """The key of the trust file that a statement names."""
    return next((key for key in trust.keys.values() if bytes.fromhex(key.id.removeprefix("sha256:")) == statement.protected.get(_KEY_ID)), None)


def _signature_rule(statement, key):
    """The rule that a statement's signature breaks (None: it breaks none), and whether more is asked of the key."""
    if key is None:
        return "signature" if statement.against_itself() else "unknown-key", False
    try:
        statement.check(key.algorithm, key.spki)
    except Unsupported:
        return "unsupported", False
    except (Wrong, Refused):
        return "signature", False
    return statement.against_certificate(key.spki), True


def check_own(statement, record, trust, findings):
    key = _exporter(statement, trust)
    rule, goes_on = _signature_rule(statement, key)
    if rule:
        (findings.refute if rule == "signature" else findings.doubt)("envelope", rule)
    if not goes_on:
        return
    named = statement.issuer == f"urn:jurat:{key.role}:{urllib.parse.quote(key.name, safe='$&+:=@')}"
    if not named or key.role != "operator" and (key.role, key.name) != (record.role, record.actor):
        findings.refute("envelope", "actor")
    if key.revoked is not None:
        findings.doubt("envelope", "revoked")
    elif key.not_after is not None:
        findings.doubt("envelope", "validity")
    if key.with_keys:
        findings.doubt("envelope", "second-signature")
