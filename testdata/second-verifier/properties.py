"""Properties of hidden values, by docs/format.md, "Properties"."""

import hashlib
import hmac
import re
from fractions import Fraction

import canonical
import sigma
from canonical import Refused, form
from shapes import is_digest, is_time, moment
from sigma import ORDER, NoProof, prove

H = sigma.point(bytes.fromhex("03dd1ae5015663ba8042c22e51aceb3956f8da3fff5d544f44d18a1f8f844eb13f"))
LARGEST = 2**53 - 1
_MEMBERS = {"range": {"hi", "lo"}, "in": {"set"}, "not_in": {"set"}, "age_at_least": {"at", "years"}}


def number(kind, value):
    """The number of a value, or NoProof."""
    if kind == "text":
        data = b"jurat/property/v1/text\0" + canonical.form(value)
        return int.from_bytes(hashlib.sha512(data).digest()[:48], "big") % ORDER
    if kind == "date":
        return _days(value)
    if kind == "time":
        return _milliseconds(value)
    if kind != "integer" and not re.fullmatch("decimal:[1-9]", kind):
        raise NoProof("unknown kind")
    prove(isinstance(value, float), "no number")
    scaled = Fraction(canonical.form(value).decode()) * (10 ** int(kind[8:]) if kind != "integer" else 1)
    prove(scaled.denominator == 1 and abs(scaled) <= LARGEST, "too many decimals, or too large")
    return scaled.numerator


def _days(value):
    """Days since 1970-01-01 in the Gregorian calendar."""
    begins = moment(f"{value}T00:00:00Z")
    prove(isinstance(value, str) and begins is not None, "no date")
    return int(begins) // 86400


def _milliseconds(value):
    prove(is_time(value), "no time")
    found = moment(value) * 1000
    prove(found.denominator == 1, "finer than a millisecond")
    return found.numerator


def commitment(kind, pointer, value, salt):
    """The commitment that a value and a salt open."""
    key = hmac.digest(b"\0" * 32, salt, "sha256")
    info, wide, block = b"jurat/property/v1\0" + pointer.encode(), b"", b""
    for i in (1, 2):
        block = hmac.digest(key, block + info + bytes([i]), "sha256")
        wide += block
    blinding = int.from_bytes(wide[:48], "big") % ORDER
    return sigma.total(((number(kind, value), sigma.G), (blinding, H)))


def is_commitment(text):
    """Whether a text is a commitment, as a payload has it."""
    try:
        return bool(re.fullmatch("p256:[0-9a-f]{66}", text) and sigma.point(bytes.fromhex(text[5:])))
    except NoProof:
        return False


def verify(statement, commitment, proof):
    """Raises NoProof unless the proof shows the statement (a dict) of the value to which this point is a commitment."""
    check(statement)
    digest = hashlib.sha256(canonical.form(statement)).hexdigest()
    tag = b"JURAT-PROPERTY-V01-CMPT-with-sigma-proofs_Shake128_P256/" + digest.encode()
    is_range = "set" not in statement
    low, high = _bounds(statement) if is_range else (None, None)
    size = sigma.POINT * (len(_bases(high - low)) if is_range else len(statement["set"]) - 1)
    prove(len(proof) >= size, "too short")
    points = iter([sigma.point(proof[i : i + sigma.POINT]) for i in range(0, size, sigma.POINT)])
    relation = sigma.Relation()
    h = relation.point(H)
    c = relation.point(commitment)
    if is_range:
        _range(relation, c, low, high, h, points)
    else:
        _set(relation, statement, c, h, points)
    relation.verify(tag, proof[size:])


def check(statement):
    """Raises NoProof for what is no statement, whatever is wrong with it."""
    try:
        _check(statement)
    except (TypeError, KeyError, ValueError, AttributeError, OverflowError, canonical.Refused) as err:
        raise NoProof(f"no statement: {err}") from err


def _check(s):
    form, kind = s.get("form"), s.get("kind")
    prove(isinstance(kind, str) and re.fullmatch("integer|date|time|text|decimal:[1-9]", kind), "unknown kind")
    members = _MEMBERS.get(form)
    prove(members and set(s) - {"audience"} == {"form", "format", "kind", "members"} | members, "other members")
    prove(s["format"] == "jurat/property/v1" and (form != "age_at_least" or kind == "date"), "another format, or another kind")
    audience = s.get("audience", "everybody")
    prove(isinstance(audience, str) and 1 <= len(audience.encode()) <= 200, "no audience")
    [m] = s["members"]
    prove(set(m) == {"pointer", "record"} and m["pointer"].startswith("/") and is_digest(m["record"]), "no member")
    if "set" in members:
        entries = {number(kind, value) % ORDER for value in s["set"]}
        prove(2 <= len(s["set"]) <= 256 and len(entries) == len(s["set"]), "a set that is too small or too large, or has something twice")
    else:
        _bounds(s)


def _bounds(s):
    if s["form"] == "age_at_least":
        at, years = s["at"], s["years"]
        _days(at)
        year = int(at[:4])
        prove(years == int(years) and 1 <= years <= 1000 and year - years >= 1, "years")
        years = int(years)
        last = f"{year - years:04}{at[4:]}"
        return _days("0000-01-01"), _days(last if moment(f"{last}T00:00:00Z") is not None else last[:4] + "-02-28")
    prove(s["kind"] != "text", "text has no order")
    lo, hi = number(s["kind"], s["lo"]), number(s["kind"], s["hi"])
    prove(lo < hi, "an empty range")
    return lo, hi


def _bases(width):
    n = width.bit_length()
    return [2**i for i in range(n - 1)] + [width - (2 ** (n - 1) - 1)]


def _range(relation, c, lo, hi, h, points):
    bases = _bases(hi - lo)
    digits = [relation.scalar() for _ in bases]
    terms = [(digit, base, 0) for digit, base in zip(digits, bases)]
    relation.equate([(1, c), (-lo, 0)], *terms, (relation.scalar(), 1, h))
    for digit in digits:
        d, s, t = relation.point(next(points)), relation.scalar(), relation.scalar()
        relation.equate([(1, d)], (digit, 1, 0), (s, 1, h))
        relation.equate([(1, d)], (digit, 1, d), (t, 1, h))


def _set(relation, statement, c, h, points):
    entries = [number(statement["kind"], value) for value in statement["set"]]
    v = relation.scalar()
    relation.equate([(1, c)], (v, 1, 0), (relation.scalar(), 1, h))
    d = None
    for entry in entries[1:]:
        following, t = relation.point(next(points)), relation.scalar()
        if d is None:
            image = [(1, following), (entry, c), (-entry * entries[0], 0)]
            relation.equate(image, (v, 1, c), (v, -entries[0], 0), (t, 1, h))
        else:
            relation.equate([(1, following), (entry, d)], (v, 1, d), (t, 1, h))
        d = following
    if statement["form"] == "in":
        relation.equate([(1, d)], (relation.scalar(), 1, h))
    else:
        relation.equate([(1, 0)], (relation.scalar(), 1, d), (relation.scalar(), 1, h))


_MAX_OF_RECORD = 512 << 10


def check_carried(record, findings):
    """Checks the proofs that a record carries."""
    if record.properties:
        findings.ask("property")
    size = 0
    for statement, proof in record.properties:
        size += len(form(statement)) + len(proof)
        if size > _MAX_OF_RECORD:
            findings.doubt("property", "volume", record)
            break
        _check_one(record, statement, proof, findings)


def _check_one(record, statement, proof, findings):
    try:
        check(statement)
    except (NoProof, Refused) as err:
        findings.doubt("property", "statement", record, str(err))
        return
    [member] = statement["members"]
    if member["record"] != record.digest:
        findings.doubt("property", "record", record)
        return
    sought = (statement["kind"], member["pointer"])
    found = [item["commitment"] for item in record.get("provable", []) if (item["kind"], item["pointer"]) == sought]
    if not found:
        findings.doubt("property", "unprovable", record)
        return
    try:
        verify(statement, sigma.point(bytes.fromhex(found[0][5:])), proof)
    except NoProof as err:
        findings.refute("property", "proof", record, str(err))
