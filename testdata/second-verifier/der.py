"""A reader of strict DER (X.690), as far as keys, signatures, certificates and time stamps need it."""

import functools
import re

import shapes
from canonical import require

BOOLEAN, INTEGER, BIT_STRING, OCTET_STRING, NULL, OID = 0x01, 0x02, 0x03, 0x04, 0x05, 0x06
ENUMERATED, UTC_TIME, GENERALIZED_TIME, SEQUENCE, SET = 0x0A, 0x17, 0x18, 0x30, 0x31
_CONSTRUCTED = 0x20
_MAX_DEPTH = 64
_MAX_OID = 1024  # far above those in use
# What the content of a tag must be.
_CONTENTS = dict.fromkeys((INTEGER, ENUMERATED), re.compile(rb"(?!\0[\0-\x7f]|\xff[\x80-\xff]).+", re.DOTALL))
_CONTENTS |= {BOOLEAN: re.compile(rb"[\0\xff]"), NULL: re.compile(b""), OID: re.compile(rb".*[\0-\x7f]", re.DOTALL)}
_TIME = re.compile(rb"(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\.\d{0,8}[1-9])?Z")


class Node:
    """One value: its tag, its content, and its whole encoding."""

    def __init__(self, data, start, depth, strict=True):
        require(depth <= _MAX_DEPTH, "DER: nested too deep")
        self.tag, begin, end = _header(data, start)
        self.encoding, self.content, self.end = data[start:end], data[begin:end], end
        self._children, self._depth = None, depth
        if strict and self.tag != SET:
            _check_content(self)

    @property
    def children(self):
        """What it holds, read when it is asked for: some of what is embedded is not to be looked into."""
        if self._children is None:
            self._children = list(Reader(self.content, self._depth + 1, True).all()) if self.tag & _CONSTRUCTED else []
            if self.tag == SET:
                require_set_order(self)
        return self._children

    def expect(self, tag):
        require(self.tag == tag, f"DER: tag {self.tag:#x} instead of {tag:#x}")
        _check_content(self)
        return self

    def integer(self):
        return int.from_bytes(self.expect(INTEGER).content, "big", signed=True)

    def oid(self):
        """An object identifier in dotted form; a very long one, which takes long to write so, in hexadecimal digits."""
        return _oid(self.expect(OID).content)

    def name(self):
        """An object identifier of any length, whose numbers are below 2**31: those of certificates are."""
        return self.oid() and _dotted(self.content, 2**31)

    def explicit(self):
        """What an explicit tag wraps."""
        require(len(self.children) == 1, "DER: an explicit tag around other than one value")
        return self.children[0]


@functools.lru_cache(4096)
def _oid(content):
    starts = [0] + [i + 1 for i, byte in enumerate(content) if not byte & 0x80]
    require(all(content[i] != 0x80 for i in starts[:-1]), "DER: a number of an object identifier longer than needed")
    return _dotted(content) if len(content) <= _MAX_OID else content.hex()


@functools.lru_cache(4096)
def _dotted(content, below=None):
    numbers, value = [], 0
    for byte in content:
        value = value << 7 | byte & 0x7F
        require(below is None or value < below, "DER: a number of an object identifier that is too large")
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    leading = min(numbers[0] // 40, 2)
    return ".".join(map(str, [leading, numbers[0] - 40 * leading] + numbers[1:]))


def read(data):
    """Reads one value that takes all of the data."""
    node = Node(data, 0, 0)
    require(node.end == len(data), "DER: bytes after the value")
    return node


def first(data):
    """The value with which data begins, whatever follows."""
    return Node(data, 0, 0, strict=False)


def bits(node):
    """The bits of a BIT STRING, as bytes, the unused ones cut off."""
    content = node.expect(BIT_STRING).content
    require(content and content[0] < 8 and (len(content) > 1 or content[0] == 0), "DER: no bit string")
    number = int.from_bytes(content[1:], "big")
    require(number & (1 << content[0]) - 1 == 0, "DER: unused bits that are set")
    return (number >> content[0]).to_bytes(len(content) - 1, "big")


def moment(node):
    """A time, in seconds; one of two digits for the year is of 1950 to 2049."""
    require(node.tag in (UTC_TIME, GENERALIZED_TIME), "DER: no time")
    century = b"" if node.tag == GENERALIZED_TIME else b"19" if node.content >= b"5" else b"20"
    match = _TIME.fullmatch(century + node.content)
    time = match and shapes.moment(match.expand(rb"\1-\2-\3T\4:\5:\6\7Z").decode())
    require(time is not None and not match[0].startswith(b"0000"), "DER: a time that is none")
    return time


def sequence(content, tag=SEQUENCE):
    """The encoding of a sequence, or of what else has this tag."""
    length = len(content)
    if length < 0x80:
        return bytes([tag, length]) + content
    size = (length.bit_length() + 7) // 8
    return bytes([tag, 0x80 | size]) + length.to_bytes(size, "big") + content


def fields(node, *tags):
    """The members of a sequence, each with its tag (None: any). One whose tag is in a list may be left out, and is None then."""
    rest, found = list(node.expect(SEQUENCE).children), []
    for tag in tags:
        if isinstance(tag, list):
            found.append(rest.pop(0) if rest and rest[0].tag == tag[0] else None)
            continue
        require(rest, "DER: a member is missing")
        found.append(rest.pop(0) if tag is None else rest.pop(0).expect(tag))
    require(not rest, "DER: more members than allowed")
    return found


class Reader:
    """Reads the values in a content one after the other. What follows the last one, or is in one whose tag is not asked for, is not looked at."""

    def __init__(self, content, depth=0, strict=False):
        self._content, self._depth, self._strict, self.at = content, depth, strict, 0

    def next(self, tag=None):
        node = Node(self._content, self.at, self._depth, self._strict)
        self.at = node.end
        return node if tag is None else node.expect(tag)

    def maybe(self, tag):
        return self.next(tag) if self._content[self.at : self.at + 1] == bytes([tag]) else None

    def all(self, tag=None):
        """All that is left, each with this tag."""
        while self.at < len(self._content):
            yield self.next(tag)


def _header(data, start):
    require(start + 2 <= len(data), "DER: cut off")
    tag, length, begin = data[start], data[start + 1], start + 2
    require(tag & 0x1F != 0x1F, "DER: a tag of several bytes")
    if length >= 0x80:
        count = length & 0x7F
        require(1 <= count <= 4 and begin + count <= len(data), "DER: a length that is not definite, or too long")
        length = int.from_bytes(data[begin : begin + count], "big")
        require(length >= 0x80 and data[begin] != 0, "DER: a length longer than needed")
        begin += count
    require(begin + length <= len(data), "DER: cut off")
    return tag, begin, begin + length


def _check_content(node):
    require(node.tag not in _CONTENTS or _CONTENTS[node.tag].fullmatch(node.content), "DER: a content that its tag cannot have")


def require_set_order(node):
    """The members of a SET OF stand in the order of their encodings."""
    encodings = [child.encoding for child in node.children]
    require(encodings == sorted(encodings), "DER: a set that is not sorted")
