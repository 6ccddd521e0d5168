"""The body of an answer, and events: section "The body of an answer" of docs/readings.md."""

from lenient import Broken, Reader, in_runs, is_json

MAX_NUMBER = 1024
DONE = b"[DONE]"
_MARK = b"\xef\xbb\xbf"
_SPACE = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")


def stripped(data):
    return in_runs(data).strip(_SPACE).encode("utf-8")


class Body:
    """The body of an answer: what it is, and its bytes."""

    def __init__(self, call):
        self.data = call.response.removeprefix(_MARK)
        self.kind = self._kind(call)

    def _kind(self, call):
        start = self.data.lstrip(b"\t\n\x0b\x0c\r ")
        as_stream = call.response_type.partition(";")[0].strip(_SPACE).lower() == "text/event-stream"
        if start.startswith(b"[") and call.protocol == "gemini.generate":
            return "stream"
        if start[:1] in (b"{", b"["):
            return "stream" if as_stream and not is_json(start) else "whole"
        return "stream" if as_stream or start.startswith(_FIELDS) else "other"


def events(body, at_end=lambda data: False):
    """Names and data of server-sent events."""
    body = body.removeprefix(_MARK)
    name, data = b"", None
    lines = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    for line in lines if lines[-1] else lines[:-1]:
        if not line:
            if data is not None:
                yield name, data
            name, data = b"", None
            continue
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"event":
            name = value
        elif field == b"data":
            data = value if data is None else data + b"\n" + value
    if data is not None and at_end(data):
        yield name, data


def answer_events(body):
    """The events of a model's answer that have data."""
    for name, data in events(body, lambda data: data == DONE or is_object(data)):
        if stripped(data):
            yield name, data


def is_object(data):
    return data.startswith(b"{") and is_json(data)


class Numbered(dict):
    """The parts of an answer by their numbers."""

    def __init__(self, make):
        super().__init__()
        self.make = make

    def at(self, number):
        if not 0 <= number <= MAX_NUMBER:
            raise Broken("a number out of range")
        if number not in self:
            self[number] = self.make()
        return self[number]

    def all(self):
        return sorted(self.items())


def read(data, new):
    """Reads a stream strictly or, if an event breaks, loosely as far as it comes. new makes what collects events."""
    for reader in (Reader(strict=True), Reader(loose=True)):
        collector = new(reader)
        try:
            collector.read(data)
        except Broken:
            if reader.strict:
                continue
        return collector
    return collector


def answered(reading, form, new):
    """The answer of a model, by its form, and whether it came in one piece; None: nothing is read."""
    call = reading.call
    if call.status >= 300 or not call.response:
        return None, False
    body = Body(call)
    if body.kind == "stream":
        return read(body.data, new).answer(), False
    if body.kind == "other":
        return None, False
    try:
        return reading.reader.bytes(form, body.data), True
    except Broken:
        return None, False
