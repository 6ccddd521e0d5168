"""JSON as recorded bodies are read: section "JSON as it is read here" of docs/readings.md."""

import codecs
import re

import canonical

_SPACE = re.compile(rb"[ \t\r\n]*")
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]*)\Z")
_STRING = re.compile(rb'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_ESCAPE = re.compile(r"((?:\\u[0-9a-fA-F]{4})+)|\\(.)")
_WORDS = {b"true": "true", b"false": "false", b"null": "null"}
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_MAX_DEPTH = 10_000
_MAX_BRIEF = 2048
_LONE = re.compile("[\ud800-\udfff]")
_BROKEN = re.compile("[\udc80-\udcff]+")


class Broken(Exception):
    """Bytes that are no JSON, or a value that is not of the form that is wanted."""


class Node:
    """A value, and the bytes that stand there for it."""

    __slots__ = ("_bytes", "_end", "_start", "kind", "value")

    def __init__(self, kind, value, raw, start=0, end=None):
        self.kind, self.value, self._bytes, self._start, self._end = kind, value, raw, start, end

    @property
    def raw(self):
        """Cut out only when it is asked for: of values in values in values, all that is in them would be kept once for each."""
        return self._bytes[self._start : self._end]


def _one_by_one(err):
    return "\ufffd", err.start + 1


codecs.register_error("jurat_one_by_one", _one_by_one)


def as_text(data):
    """Bytes as a text, each that is no UTF-8 as U+FFFD."""
    return data.decode("utf-8", "jurat_one_by_one")


def in_runs(data):
    """Bytes as a text, each run that is no UTF-8 as U+FFFD."""
    return _BROKEN.sub("\ufffd", data.decode("utf-8", "surrogateescape"))


def brief(text):
    data = text.encode("utf-8")
    return text if len(data) <= _MAX_BRIEF else in_runs(data[:_MAX_BRIEF] + "…".encode())


class _Parser:
    """Reads values one after the other."""

    def __init__(self, data, strict):
        self.data, self.at, self.strict = data, 0, strict

    def skip(self):
        self.at = _SPACE.match(self.data, self.at).end()

    def value(self):
        """The next value. It goes without recursion, as hostile bytes are nested deep."""
        stack, done = [], None
        while True:
            if done is None:
                done = self._begin(stack)
            if done is None:
                continue
            if not stack:
                return done
            done = self._into(stack, done)

    def _begin(self, stack):
        """Reads a value that has no values in it, or begins one that has; then it returns None."""
        self.skip()
        start, char = self.at, self.data[self.at : self.at + 1]
        if char in (b"{", b"["):
            if len(stack) >= _MAX_DEPTH:
                raise Broken("nested too deep")
            self.at += 1
            stack.append([char, start, [], None])
            self.skip()
            if self.data[self.at : self.at + 1] == (b"}" if char == b"{" else b"]"):
                return self._end(stack)
            if char == b"{":
                self._name(stack[-1])
            return None
        if char == b'"':
            text = self._string()
            return Node("string", text, self.data, start, self.at)
        number = _NUMBER.match(self.data, start)
        if number:
            self.at = number.end()
            return Node("number", None, number[0])
        for word, kind in _WORDS.items():
            if self.data.startswith(word, start):
                self.at += len(word)
                return Node(kind, None, word)
        raise Broken("no value")

    def _into(self, stack, done):
        """Puts a value into what is open; returns that, if it ends."""
        top = stack[-1]
        top[2].append((top[3], done) if top[0] == b"{" else done)
        self.skip()
        char = self.data[self.at : self.at + 1]
        if char == b",":
            self.at += 1
            if top[0] == b"{":
                self.skip()
                self._name(top)
            return None
        if char != (b"}" if top[0] == b"{" else b"]"):
            raise Broken("neither a comma nor an end")
        return self._end(stack)

    def _end(self, stack):
        self.at += 1
        char, start, values, _ = stack.pop()
        if self.strict and char == b"{" and len({name for name, _ in values}) != len(values):
            raise Broken("a name twice")
        return Node("object" if char == b"{" else "array", values, self.data, start, self.at)

    def _name(self, top):
        top[3] = self._string()
        self.skip()
        if self.data[self.at : self.at + 1] != b":":
            raise Broken("no colon")
        self.at += 1

    def _string(self):
        match = _STRING.match(self.data, self.at)
        if not match:
            raise Broken("no string")
        self.at = match.end()
        inside = match[0][1:-1]
        try:
            text = inside.decode("utf-8")
        except UnicodeDecodeError as err:
            if self.strict:
                raise Broken("no UTF-8") from err
            text = as_text(inside)
        if "\\" in text:
            text = _ESCAPE.sub(self._escape, text)
        return text

    def _escape(self, match):
        if match[2]:
            return _SHORT.get(match[2], match[2])
        units = match[1].split("\\u")[1:]
        text = b"".join(int(unit, 16).to_bytes(2, "big") for unit in units).decode("utf-16-be", "surrogatepass")
        if self.strict and _LONE.search(text):
            raise Broken("half a surrogate")
        return _LONE.sub("\ufffd", text)


def parse(data, strict=False):
    """The one value that bytes are."""
    parser = _Parser(data, strict)
    node = parser.value()
    parser.skip()
    if parser.at != len(data):
        raise Broken("something after the value")
    return node


def values(data):
    """The values that stand one after the other, up to what is none."""
    parser, found = _Parser(data, False), []
    parser.skip()
    while parser.at < len(data):
        try:
            found.append(parser.value())
        except Broken:
            break
        parser.skip()
    return found


def objects_in_array(data, strict):
    """The bytes of the objects that an array begins with, as far as they are whole."""
    parser = _Parser(data, strict)
    parser.skip()
    parser.at += 1
    for before in range(len(data)):
        parser.skip()
        if before and data[parser.at : parser.at + 1] != b",":
            return
        parser.at += 1 if before else 0
        parser.skip()
        if data[parser.at : parser.at + 1] != b"{":
            return
        try:
            yield parser.value().raw
        except Broken:
            return


def is_json(data):
    try:
        parse(data)
    except Broken:
        return False
    return True


# The forms of values. An object's form is a Form; a list of one form is an array of it; Maybe tells none from empty.

TEXT, WHOLE, TRUTH, ANY = "text", "whole", "truth", "any"


class Maybe:
    def __init__(self, form):
        self.form = form


class Form:
    """The form of an object. Names in loosely may be spelled with _, - and in any case."""

    def __init__(self, members, rest=False, loosely=()):
        self.members, self.rest, self.loosely = members, rest, {_folded(name): name for name in loosely}

    def of(self, name):
        if name in self.members:
            return name
        return self.loosely.get(_folded(name))

    def empty(self):
        found = {name: empty(form) for name, form in self.members.items()}
        return found | ({"rest": []} if self.rest else {})


def _folded(name):
    return name.replace("_", "").replace("-", "").replace("\u017f", "s").replace("\u212a", "k").lower()


def empty(form):
    """What null, or an absent member, is."""
    if isinstance(form, Form):
        return form.empty()
    if isinstance(form, list):
        return []
    if form in (TEXT, WHOLE, TRUTH):
        return {TEXT: "", WHOLE: 0, TRUTH: False}[form]
    return form.empty() if hasattr(form, "empty") else None


class Reader:
    """Reads values by forms: loose, lenient or strict."""

    def __init__(self, loose=False, strict=False):
        self.loose, self.strict = loose, strict

    def bytes(self, form, data):
        return self.read(form, parse(data, self.strict))

    def read(self, form, node, before=None):
        if form == ANY:
            return node
        if node.kind == "null":
            return empty(form)
        if isinstance(form, Maybe):
            return self.read(form.form, node, before)
        if isinstance(form, list):
            if node.kind != "array":
                raise Broken("no array")
            return [self.read(form[0], item) for item in node.value]
        if isinstance(form, Form):
            return self._object(form, node, before)
        if form == TEXT:
            return self._text(node)
        if form == WHOLE:
            return whole(node)
        if form == TRUTH:
            if node.kind not in ("true", "false"):
                raise Broken("neither true nor false")
            return node.kind == "true"
        return form.read(self, node)

    def _text(self, node):
        if node.kind == "string":
            return node.value
        if not self.loose:
            raise Broken("no text")
        return as_text(node.raw)

    def _object(self, form, node, before):
        if node.kind != "object":
            raise Broken("no object")
        found = before or form.empty()
        for name, value in node.value:
            its = form.of(name)
            if its:
                found[its] = self.read(form.members[its], value, found[its] if isinstance(found[its], dict) else None)
            elif form.rest:
                found["rest"].append((name, value))
        return found


def whole(node):
    number = decimal(node.raw.decode()) if node.kind == "number" and _WHOLE.match(node.raw.decode()) else 2**63
    if not -(2**63) <= number < 2**63:
        raise Broken("no whole number")
    return number


def decimal(text):
    """The number that decimal digits are. Of more digits than any number has that is read here, the first ones: Python refuses to read thousands."""
    digits = text.lstrip("+-").lstrip("0")[:40] or "0"
    return -int(digits) if text.startswith("-") else int(digits)


class _Arguments:
    """A text, or any other value as the bytes that stand there."""

    def empty(self):
        return ""

    def read(self, reader, node):
        return node.value if node.kind == "string" else as_text(node.raw)


class _OneOrMore:
    """An array, or one element alone."""

    def __init__(self, form):
        self.form = form

    def empty(self):
        return []

    def read(self, reader, node):
        return [reader.read(self.form, node)] if node.kind == "object" else reader.read([self.form], node)


ARGUMENTS, OneOrMore = _Arguments(), _OneOrMore


# Words of the page.


def there(node):
    return node is not None and node.kind != "null"


def members(node):
    """The members of an object; None of any other value."""
    return dict(node.value) if node is not None and node.kind == "object" else None


def member(node, *names):
    """node.a.b: the value; None: it is absent."""
    for name in names:
        node = (members(node) or {}).get(name)
    return node


def elements(node):
    return node.value if node is not None and node.kind == "array" else []


def word(node):
    return node.value if node is not None and node.kind == "string" else ""


def first(*texts):
    return next((text for text in texts if text), "")


def written(node):
    """A value as a text."""
    return "" if node is None else written_bytes(node.raw)


def written_bytes(data):
    try:
        return canonical.form(canonical.parse(data)).decode("utf-8")
    except canonical.Refused:
        return in_runs(data)


def value(node):
    """A value in canonical form, or a string in its place."""
    try:
        return canonical.parse(node.raw)
    except canonical.Refused:
        return in_runs(node.raw)


_TOKEN = re.compile(rb'[ \t\r\n]+|("(?:[^"\\]|\\.)*")|[^ \t\r\n"]+', re.DOTALL)


def compact(data):
    """A value without white space, with strings as in the canonical form."""
    return b"".join(quoted(parse(match[1]).value) if match[1] else b"" if match[0].isspace() else match[0] for match in _TOKEN.finditer(data))


def quoted(text):
    return canonical.form(text)


def together(pairs):
    """An object that is put together from members: its bytes."""
    pairs = sorted(dict(pairs).items(), key=lambda pair: pair[0].encode("utf-8"))
    return b"{" + b",".join(quoted(name) + b":" + compact(node.raw) for name, node in pairs) + b"}"


def string(text):
    return Node("string", text, quoted(text))
