"""What recorders saw, and guarantee vantage: sections "What a recorder saw" and "Recorded acts" of docs/format.md."""

import re

import facts
from canonical import form, require, tried
from shapes import MAX_WHOLE, digest_of, has, is_count, is_digest_not_zero, is_list_of, is_name, is_sorted, is_time, is_true, is_whole, of, one_of, unbase64

MAX_WINDOW = 128 << 20
MAX_COPIED = 2 << 30
_BESIDE = {"prompt", "response", "context", "tools_used"}
_OBSERVED = ("usage", "finish", "calls", "context_by_reference")
_OPEN = ("missing", "withheld", "unsealed", "truncated", "masked")
MAX_BODY = 32 << 20
_ENDED = ("complete", "upstream_error", "upstream_cut", "client_gone", "recorder_cut", "lost_in_crash")
_FIDELITY = ("bytes", "parsed", "attributes")
_VANTAGE = ("proxy", "proxy_mitm", "in_process", "telemetry", "examiner")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def _is_headers(value):
    if not isinstance(value, dict) or len(value) > 64:
        return False
    return all(isinstance(text, str) and len(name.encode()) + len(text.encode()) <= 4096 for name, text in value.items())


_PART = dict.fromkeys(("encoding", "type"), is_name) | dict.fromkeys(("masked", "truncated"), is_true) | {
    "decoded": one_of("refused"),
    "decoded_sha256": is_digest_not_zero,
    "headers": _is_headers,
}


def _is_part(value, optional):
    if not has(value, {"bytes": is_count, "sha256": is_digest_not_zero}, optional):
        return False
    encoded, decoded, cut = "encoding" in value, "decoded_sha256" in value, "truncated" in value or "masked" in value
    if "decoded" in value and (not encoded or decoded):
        return False
    if encoded and "decoded" not in value and not decoded or cut and not decoded or decoded and not encoded and not cut:
        return False
    return value.get("delivered", 0) <= value["bytes"]


def _is_text(value, most):
    return isinstance(value, str) and 1 <= len(value.encode()) <= most


_TLS = {"not_after": is_time, "spki_sha256": is_digest_not_zero}
_REQUIRED = {
    "agent": is_name,
    "began": is_time,
    "ended": one_of(*_ENDED),
    "fidelity": one_of(*_FIDELITY),
    "protocol": is_name,
    "vantage": one_of(*_VANTAGE),
}
_OPTIONAL = dict.fromkeys("credential finish method provider_request_id retry_of".split(), is_name) | {
    "attempt": lambda value: is_whole(value, 1, MAX_WHOLE),
    "context_by_reference": lambda value: is_list_of(value, lambda text: _is_text(text, 4096), 1000),
    "calls": lambda value: is_list_of(value, lambda use: has(use, {}, {"id": is_name, "name": is_name}), 1000),
    "ended_ms": is_count,
    "first_byte_ms": is_count,
    "judged": one_of("agent"),
    "missing": lambda value: is_list_of(value, is_name, 1000),
    "path": lambda value: _is_text(value, 2000) and not _CONTROL.search(value),
    "request": lambda value: _is_part(value, _PART),
    "response": lambda value: _is_part(value, _PART | {"delivered": is_count}),
    "side": one_of("asked", "answered"),
    "status": lambda value: is_whole(value, 100, 599),
    "upstream": lambda value: has(value, {"origin": is_name}, {"tls": lambda tls: has(tls, _TLS)}),
    "usage": of(dict),
}


def is_observed(value):
    if not has(value, _REQUIRED, _OPTIONAL):
        return False
    if (value["vantage"] == "telemetry") != (value["fidelity"] == "attributes"):
        return False
    return value["fidelity"] != "bytes" or "request" in value


_CODINGS = ("gzip", "deflate", "br", "zstd")


def read_differently(observed):
    """Whether the side that got a body need not have read in it what is read here."""
    request, response = ({} if observed.get(name, {}).get("bytes", 0) == 0 else observed[name] for name in ("request", "response"))
    if any("decoded" in part or "," in part.get("type", "") for part in (request, response)):
        return True
    return "encoding" in request or "encoding" in response and not _offered(observed.get("request", {}), response["encoding"])


def _offered(request, encoding):
    takes = {}
    for element in request.get("headers", {}).get("accept-encoding", "").split(","):
        coding, weighed, weight = element.partition(";")
        weight, coding = weight.strip(" \t"), _coding(coding)
        taken = not weighed or weight.startswith("q=") and any(digit in weight for digit in "123456789")
        takes[coding] = taken and takes.get(coding, True)
    codings = [_coding(coding) for coding in encoding.split(",")]
    return len(set(codings)) == len(codings) and all(coding in _CODINGS and takes.get(coding, takes.get("*", False)) for coding in codings)


def _coding(name):
    name = name.strip(" \t")
    return "gzip" if name == "x-gzip" else name


def sealed(part):
    """The digest of the bytes that are sealed."""
    return part.get("decoded_sha256", part["sha256"])


def _own(value):
    """Bytes that a body or a piece has of its own; None if it has none."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and set(value) == {"base64"} and isinstance(value["base64"], str):
        return unbase64(value["base64"], least=0)
    return None


def pieces(value):
    """The pieces of a body: bytes, or triples of digest, offset and length. Raises Refused for what is no body."""
    own = _own(value)
    if own is not None:
        listed = [own]
    else:
        require(has(value, {"pieces": lambda listed: is_list_of(listed, lambda _: True, 4096)}), "no body")
        listed = [_piece(piece) for piece in value["pieces"]]
    require(sum(len(piece) if isinstance(piece, bytes) else piece[2] for piece in listed) <= MAX_BODY, "a body that is too long")
    return listed


def _piece(value):
    own = _own(value)
    if own:
        return own
    copied = {"at": lambda at: is_whole(at, 0, MAX_BODY), "from": is_digest_not_zero, "length": lambda length: is_whole(length, 1, MAX_BODY)}
    require(has(value, copied), "no piece of a body")
    return value["from"], int(value["at"]), int(value["length"])


def is_body(value):
    return bool(tried(pieces, value))


def _is_missed(value):
    row = {"agent": is_name, "minute": is_time, "calls": lambda calls: is_whole(calls, 1, MAX_WHOLE)}
    return is_list_of(value, lambda item: has(item, row), 1000) and is_sorted([(item["minute"].encode(), item["agent"].encode()) for item in value])


_EVENT = dict.fromkeys("agent protocol reason server tool version".split(), is_name) | {
    "began": is_time,
    "calls": is_count,
    "missed": _is_missed,
    "mode": one_of("closed", "open"),
    "since": is_time,
    "vantage": one_of(*_VANTAGE),
}
_EVENT |= dict.fromkeys("after before configuration request_sha256".split(), is_digest_not_zero)
_EVENTS = {
    "start": "configuration mode vantage version",
    "stop": "reason",
    "heartbeat": "calls since",
    "mode": "mode reason",
    "configuration": "configuration reason",
    "gap": "missed reason",
    "lost_in_crash": "agent began protocol request_sha256",
    "tool_definition_changed": "after agent before server tool",
}

def check_event(response):
    """Refuses what is no response of a recorder_event."""
    event = response.get("event") if isinstance(response, dict) else None
    require(isinstance(event, str) and event in _EVENTS, "no such event")
    rest = {name: value for name, value in response.items() if name != "event"}
    wanted = _EVENTS[event].split()
    if event == "stop" and {"calls", "since"} & set(rest):  # it has both or none
        wanted += ["calls", "since"]
    require(has(rest, {name: _EVENT[name] for name in wanted}), "the event is not what it must be")


class _Window:
    """The bodies from which later ones may copy."""

    def __init__(self):
        self.bodies, self.size = {}, 0

    def keep(self, digest, body):
        if digest in self.bodies or not body:
            return
        self.bodies[digest] = body
        self.size += len(body)
        while self.size > MAX_WINDOW:
            self.size -= len(self.bodies.pop(next(iter(self.bodies))))


class _Body:
    """The bytes of one direction, or the rule that says why they are not read."""

    def __init__(self, record, direction):
        self.part = record.payload["observed"].get(direction)
        name = f"{direction}_body"
        self.body, self.rule, self.pieces = None, None, []
        shown, value = record.disclosed(name)
        there = name in record.payload
        if not there and (self.part is None or self.part["bytes"] == 0):
            return
        if self.part is None:
            self.rule = "digest"
        elif not there:
            self.rule = "unsealed"
        elif not shown:
            self.rule = "withheld"
        else:
            self.pieces = tried(pieces, value) or []
            self.rule = None if self.pieces else "digest"

    def copied(self):
        return sum(piece[2] for piece in self.pieces if not isinstance(piece, bytes))

    def read(self, window):
        if self.pieces and self.rule is None:
            self._join(window)
        for rule in ("truncated", "masked"):
            if self.rule is None and self.part and rule in self.part:
                self.rule = rule

    def _join(self, window):
        joined = []
        for piece in self.pieces:
            if not isinstance(piece, bytes):
                source, at, length = piece
                if source not in window.bodies:
                    self.rule = "missing"
                    return
                piece = window.bodies[source][at : at + length]
                if len(piece) != length:
                    self.rule = "digest"
                    return
            joined.append(piece)
        body = b"".join(joined)
        part = self.part
        as_passed = "decoded_sha256" not in part or "masked" in part and not {"encoding", "truncated"} & set(part)
        short = as_passed and len(body) != part["bytes"]
        if digest_of(body) != sealed(self.part) or short:
            self.rule = "digest"
            return
        self.body = body
        window.keep(sealed(self.part), body)


def check(records, findings):
    """Judges every record of a recorder, and returns those that tell of acts that are in no record."""
    judged = [record for record in records if record.role == "recorder"]
    if not judged:
        return []
    findings.ask("vantage")
    window, copied, gaps = _Window(), 0, []
    for record in judged:
        if "observed" not in record.payload:
            rule = _event(record)
        else:
            bodies = [_Body(record, direction) for direction in ("request", "response")]
            own = sum(body.copied() for body in bodies)
            copied += own
            rule = "volume" if own and copied > MAX_COPIED else _rule(record, bodies, window)
        if rule in ("digest", "refuted"):
            findings.refute("vantage", "projection" if rule == "refuted" else rule, record)
        elif rule:
            findings.doubt("vantage", rule, record)
        if rule == "gap":
            gaps.append(record)
    if not findings.against("vantage") and findings.against("content", "authentication"):
        findings.doubt("vantage", "rests")
    return gaps


def _event(record):
    response = record.payload["response"]
    if not tried(lambda: check_event(response) or True):
        return "body"
    return "gap" if response["event"] in ("gap", "lost_in_crash") else None


def _rule(record, bodies, window):
    for body in bodies:
        body.read(window)
    rules = [body.rule for body in bodies]
    observed = record.payload["observed"]
    if "digest" in rules:
        return "digest"
    known = {"request", "response"} & set(observed) and facts.known(observed["protocol"]) and not set(rules) & {"missing", "withheld", "unsealed"}
    found = _found(record, bodies) if known else {}
    if known and any(name not in found or form(value) != form(found[name]) for name, value in _stated(record).items()):
        return "refuted"
    if observed["fidelity"] != "bytes":
        return "second-hand"
    if observed["agent"] == record.payload["agent_id"]:
        return "recorder-agent"
    for rule in _OPEN:
        if rule in rules:
            return rule
    if read_differently(observed):
        return "readers"
    if not known and _stated(record):
        return "projection"
    if observed["ended"] == "lost_in_crash":
        return "gap"
    return "projection" if _BESIDE & set(record.payload) else None


def _stated(record):
    """The facts that a record states."""
    observed = record.payload["observed"]
    held = {name: observed if name in _OBSERVED else record.payload for name in facts.MEMBERS}
    return {name: holder[name] for name, holder in held.items() if name in holder}


def _found(record, bodies):
    """The facts in the bytes that its record seals. Bytes that are sealed encoded say nothing."""
    observed = record.payload["observed"]
    request, response = (b"" if body.part is None or "decoded" in body.part else body.body or b"" for body in bodies)
    return facts.find(observed["protocol"], observed.get("path", ""), int(observed.get("status", 0)), request, response)
