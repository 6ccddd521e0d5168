"""What a recorder states of what it saw: section "What a recorder saw" of docs/format.md."""

import re

from canonical import Refused
from shapes import MAX_WHOLE, has, is_digest_not_zero, is_list_of, is_name, is_sorted, is_time, is_whole, require, unbase64

MAX_BODY = 32 << 20
_ENDED = ("complete", "upstream_error", "upstream_cut", "client_gone", "recorder_cut", "lost_in_crash")
_FIDELITY = ("bytes", "parsed", "attributes")
_VANTAGE = ("proxy", "proxy_mitm", "in_process", "telemetry", "examiner")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def _is_count(value):
    return is_whole(value, 0, MAX_WHOLE)


def _is_true(value):
    return value is True


def _is_headers(value):
    if not isinstance(value, dict) or len(value) > 64:
        return False
    return all(isinstance(text, str) and len(name.encode()) + len(text.encode()) <= 4096 for name, text in value.items())


_PART = dict.fromkeys(("encoding", "type"), is_name) | dict.fromkeys(("masked", "truncated"), _is_true) | {
    "decoded": lambda value: value == "refused",
    "decoded_sha256": is_digest_not_zero,
    "headers": _is_headers,
}


def _is_part(value, optional):
    if not has(value, {"bytes": _is_count, "sha256": is_digest_not_zero}, optional):
        return False
    encoded, decoded, cut = "encoding" in value, "decoded_sha256" in value, "truncated" in value or "masked" in value
    if "decoded" in value and (not encoded or decoded):
        return False
    if encoded and "decoded" not in value and not decoded or cut and not decoded or decoded and not encoded and not cut:
        return False
    return value.get("delivered", 0) <= value["bytes"]


def _is_upstream(value):
    tls = {"not_after": is_time, "spki_sha256": is_digest_not_zero}
    return has(value, {"origin": is_name}, {"tls": lambda member: has(member, tls)})


def _is_text(value, most):
    return isinstance(value, str) and 1 <= len(value.encode()) <= most


_REQUIRED = {
    "agent": is_name,
    "began": is_time,
    "ended": lambda value: value in _ENDED,
    "fidelity": lambda value: value in _FIDELITY,
    "protocol": is_name,
    "vantage": lambda value: value in _VANTAGE,
}
_OPTIONAL = dict.fromkeys("credential finish method provider_request_id retry_of".split(), is_name) | {
    "attempt": lambda value: is_whole(value, 1, MAX_WHOLE),
    "context_by_reference": lambda value: is_list_of(value, lambda text: _is_text(text, 4096), 1000),
    "calls": lambda value: is_list_of(value, lambda use: has(use, {}, {"id": is_name, "name": is_name}), 1000),
    "ended_ms": _is_count,
    "first_byte_ms": _is_count,
    "judged": lambda value: value == "agent",
    "missing": lambda value: is_list_of(value, is_name, 1000),
    "path": lambda value: _is_text(value, 2000) and not _CONTROL.search(value),
    "request": lambda value: _is_part(value, _PART),
    "response": lambda value: _is_part(value, _PART | {"delivered": _is_count}),
    "side": lambda value: value in ("asked", "answered"),
    "status": lambda value: is_whole(value, 100, 599),
    "upstream": _is_upstream,
    "usage": lambda value: isinstance(value, dict),
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
    elif isinstance(value, dict) and set(value) == {"pieces"} and isinstance(value["pieces"], list) and 1 <= len(value["pieces"]) <= 4096:
        listed = [_piece(piece) for piece in value["pieces"]]
    else:
        raise Refused("no body")
    if sum(len(piece) if isinstance(piece, bytes) else piece[2] for piece in listed) > MAX_BODY:
        raise Refused("a body that is too long")
    return listed


def _piece(value):
    own = _own(value)
    if own:
        return own
    copied = {"at": lambda at: is_whole(at, 0, MAX_BODY), "from": is_digest_not_zero, "length": lambda length: is_whole(length, 1, MAX_BODY)}
    if not has(value, copied):
        raise Refused("no piece of a body")
    return value["from"], int(value["at"]), int(value["length"])


def is_body(value):
    try:
        return bool(pieces(value))
    except Refused:
        return False


def _is_missed(value):
    row = {"agent": is_name, "minute": is_time, "calls": lambda calls: is_whole(calls, 1, MAX_WHOLE)}
    return is_list_of(value, lambda item: has(item, row), 1000) and is_sorted([(item["minute"].encode(), item["agent"].encode()) for item in value])


_EVENT = dict.fromkeys("agent protocol reason server tool version".split(), is_name) | {
    "began": is_time,
    "calls": _is_count,
    "missed": _is_missed,
    "mode": lambda value: value in ("closed", "open"),
    "since": is_time,
    "vantage": lambda value: value in _VANTAGE,
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

# Members that an event has all of or none.
_TOGETHER = {"stop": "calls since"}


def check_event(response):
    """Refuses what is no response of a recorder_event."""
    event = response.get("event") if isinstance(response, dict) else None
    require(isinstance(event, str) and event in _EVENTS, "no such event")
    rest = {name: value for name, value in response.items() if name != "event"}
    wanted = _EVENTS[event].split()
    together = _TOGETHER.get(event, "").split()
    if any(name in rest for name in together):
        wanted += together
    require(has(rest, {name: _EVENT[name] for name in wanted}), "the event is not what it must be")
