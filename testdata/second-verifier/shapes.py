"""Checks of single values that several sections of docs/format.md share: digests, names, times, base64, whole numbers."""

import base64
import binascii
import datetime
import hashlib
import re
import unicodedata
from fractions import Fraction

from canonical import Refused, form, require

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}\Z")
_UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\Z")
_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d+))?(Z|[+-](\d\d):(\d\d))\Z", re.ASCII)
_BIDI_CONTROL = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
WHITE_SPACE = "\t\n\x0b\x0c\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
MAX_WHOLE = 9007199254740991


def digest_of(data):
    """The digest of bytes, as the format writes it."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def digest_of_value(value):
    """The digest of the canonical form of a value."""
    return digest_of(form(value))


def is_digest(value):
    return isinstance(value, str) and bool(_DIGEST.match(value))


def is_digest_not_zero(value):
    return is_digest(value) and value != "sha256:" + "0" * 64


def is_uuid7(value):
    return isinstance(value, str) and bool(_UUID7.match(value))


def is_blank(text):
    """Whether there is nothing but white space (Unicode White_Space), or nothing at all."""
    return not text.strip(WHITE_SPACE)


def is_name(value):
    return (
        isinstance(value, str)
        and not is_blank(value)
        and len(value.encode("utf-8")) <= 200
        and not any(unicodedata.category(char) == "Cc" or char in _BIDI_CONTROL for char in value)
    )


def is_text(value):
    """A string that is not white space alone."""
    return isinstance(value, str) and not is_blank(value)


def is_true(value):
    return value is True


def is_filled(value):
    return isinstance(value, str) and value != ""


def of(kind):
    return lambda value: isinstance(value, kind)


def one_of(*words):
    return lambda value: value in words


def is_whole(value, low, high):
    return isinstance(value, float) and value.is_integer() and low <= value <= high


def is_count(value):
    return is_whole(value, 0, MAX_WHOLE)


def is_list_of(value, check, most=None):
    """Whether it is an array, not empty, whose items pass the check."""
    return isinstance(value, list) and 1 <= len(value) and (most is None or len(value) <= most) and all(map(check, value))


def is_sorted(items):
    """Whether items are in order, none twice."""
    return items == sorted(set(items))


def has(value, required, optional=None):
    """Whether an object has these members and no others, and each passes its check."""
    checks = required | (optional or {})
    return isinstance(value, dict) and set(required) <= set(value) <= set(checks) and all(checks[name](member) for name, member in value.items())


def is_time(value):
    """A time as payloads write it."""
    return isinstance(value, str) and value.endswith("Z") and len(value) <= 30 and moment(value) is not None


def moment(text):
    """An RFC 3339 time as a number of seconds since 1970, exact to the nanosecond, or None."""
    match = _TIME.match(text)
    if not match:
        return None
    year, *rest = (int(match[i]) for i in range(1, 7))
    # Year 0000 is a leap year that Python does not know; 400 years later the calendar is the same.
    shift = 400 if year == 0 else 0
    try:
        since = datetime.datetime(year + shift, *rest, tzinfo=datetime.timezone.utc) - _EPOCH
    except ValueError:
        return None
    hours, minutes = (int(match[i] or 0) for i in (9, 10))
    if hours > 23 or minutes > 59:
        return None
    fraction = Fraction(int((match[7] or "")[:9].ljust(9, "0")), 10**9)
    ahead = (hours * 3600 + minutes * 60) * (-1 if match[8][0] == "-" else 1)
    return since // datetime.timedelta(seconds=1) - shift * 31556952 + fraction - ahead


_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def time_text(seconds):
    """A moment as RFC 3339 in UTC, without zeros at the end of a fraction."""
    whole = int(seconds // 1)
    text = (_EPOCH + datetime.timedelta(seconds=whole)).strftime("%Y-%m-%dT%H:%M:%S")
    fraction = f"{int((seconds - whole) * 10**9):09d}".rstrip("0")
    return text + ("." + fraction if fraction else "") + "Z"


def unbase64(text, least=1, most=None, strict=True):
    """Base64 with padding, without line breaks; strictly, with unused bits that are zero."""
    require(isinstance(text, str), "no base64: not a string")
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError) as err:
        raise Refused(f"no base64: {err}") from err
    require(len(text) % 4 == 0 and (not strict or base64.b64encode(data).decode() == text), "base64 is not strict")
    require(least <= len(data) and (most is None or len(data) <= most), f"{len(data)} bytes are not allowed here")
    return data


def members(value, required, optional=()):
    """Refuses what is no object with exactly these members; gives it back."""
    require(isinstance(value, dict), "not an object")
    missing, further = set(required) - set(value), set(value) - {*required, *optional}
    require(not missing and not further, f"missing: {sorted(missing)}; not allowed here: {sorted(further)}")
    return value
