"""The canonical form of JSON (RFC 8785) and what has none: section "Canonical form" of docs/format.md.

A parsed document is made of dict, list, str, bool, None and float. Every number is a float: one that a float cannot hold
exactly is refused, so nothing is lost.
"""

import functools
import json
from decimal import Decimal
from json.encoder import encode_basestring

MAX_BYTES = 33_554_432
MAX_DEPTH = 128
MAX_VALUES = 262_144


class Refused(Exception):
    """What is looked at is not what the format allows; the message says why."""


def require(holds, reason, kind=Refused):
    if not holds:
        raise kind(reason)


def tried(read, *given):
    """What a reader gives; None if it refuses."""
    try:
        return read(*given)
    except Refused:
        return None


def parse(data, bounded=True):
    """Reads a document that has a canonical form. Files that hold payloads are not bounded."""
    require(not bounded or len(data) <= MAX_BYTES, f"more than {MAX_BYTES} bytes")
    try:
        text = data.decode("utf-8")
        value = json.loads(text, object_pairs_hook=_members, parse_int=as_number, parse_float=as_number, parse_constant=no_number)
        json.dumps(value, ensure_ascii=False).encode("utf-8")  # refuses surrogates without their other half
    except (UnicodeError, json.JSONDecodeError, RecursionError) as err:
        raise Refused(f"not JSON in UTF-8, or nested too deep: {err}") from err
    if bounded:
        check_bounds(value)
    return value


def without_mark(data):
    """A file without the byte order mark with which it may begin."""
    return data.removeprefix(b"\xef\xbb\xbf")


def check_bounds(value):
    """Refuses a value that is nested too deep or too long in canonical form."""
    require(depth(value) <= MAX_DEPTH, f"nested more than {MAX_DEPTH} deep")
    check_values(value)
    require(len(form(value)) <= MAX_BYTES, f"more than {MAX_BYTES} bytes in canonical form")


def check_values(value):
    """Refuses a value that has too many in it: by the commas and opening brackets with which it is written."""
    found = sum(max(1, len(item)) for level in _levels(value) for item in level)
    require(found <= MAX_VALUES, f"more than {MAX_VALUES} values")


def _levels(value):
    """The arrays and objects in a value, by how deep they stand."""
    levels, level = [], [value]
    while level := [item for item in level if isinstance(item, (dict, list))]:
        levels.append(level)
        level = [child for item in level for child in (item.values() if isinstance(item, dict) else item)]
    return levels


def form(value):
    """The canonical form, in bytes."""
    return _text(value).encode("utf-8")


def depth(value):
    """How deep arrays and objects are nested; [] is 1 deep."""
    return len(_levels(value))


def _members(pairs):
    members = dict(pairs)
    require(len(members) == len(pairs), "a member name occurs twice")
    return members


def no_number(text):
    raise Refused(f"{text} is no JSON")


def as_number(text):
    """The number, if its exact decimal value is that of its canonical form."""
    number = float(text)
    if number == 0:
        require(not text.startswith("-") and not text.lower().split("e")[0].strip("0."), f"{text[:40]} is negative, or would become 0")
    elif number in (float("inf"), float("-inf")) or Decimal(text) != Decimal(repr(number)):
        raise Refused(f"{text[:40]} is not exactly a double")
    return number


def _text(value):
    if isinstance(value, str):
        return encode_basestring(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return number_text(value)
    if isinstance(value, list):
        return "[" + ",".join([_text(item) for item in value]) + "]"
    names = sorted(value, key=None if "".join(value).isascii() else lambda name: name.encode("utf-16-be"))
    return "{" + ",".join([f"{encode_basestring(name)}:{_text(value[name])}" for name in names]) + "}"


@functools.lru_cache(4096)
def number_text(number):
    """A number as ECMAScript writes it (Number::toString)."""
    exact = Decimal(repr(float(number))).normalize()
    return format(exact, "f" if -7 < exact.adjusted() < 21 else "e") if number else "0"
