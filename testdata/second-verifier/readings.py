#!/usr/bin/env python3
"""What the bytes of recorded acts say: docs/readings.md.

    python3 readings.py <CALLS

reads a call as JSON from each line (protocol, path, status, request and response in base64, their types) and prints the members that
its bytes say, in canonical form, on a line of its own.
"""

import base64
import json
import re
import sys

sys.dont_write_bytecode = True

import canonical  # noqa: E402
import saida2a  # noqa: E402
import saidchat  # noqa: E402
import saidgenerate  # noqa: E402
import saidmcp  # noqa: E402
import saidmessages  # noqa: E402
import saidresponses  # noqa: E402
import saidtelemetry  # noqa: E402
import spoken  # noqa: E402

_STEPS = 100_000  # in values that are nested 10,000 deep, as the page lets them be

_MODELS = {
    "openai.chat": saidchat.read,
    "openai.responses": saidresponses.read,
    "anthropic.messages": saidmessages.read,
    "gemini.generate": saidgenerate.read,
}
_OTHERS = {"a2a/0.3": saida2a.read, "a2a/1.0": saida2a.read, "otlp": saidtelemetry.read}
_STRING = re.compile(rb'"(?:[^"\\\r\n]|\\[^\r\n])*"?')
MEMBERS = ("model", "model_version", "parameters", "prompt", "response", "usage", "context_by_reference")


class Call:
    def __init__(self, protocol, path, status, request, response, request_type, response_type):
        self.protocol, self.path, self.status = protocol, path, status
        self.request, self.response, self.request_type, self.response_type = request, response, request_type, response_type


def knows(protocol):
    return protocol in _MODELS or protocol in _OTHERS or protocol.startswith("mcp/")


def read(call):
    """The members that the bytes of a call say; those that they do not say are absent."""
    if any(_has_too_many_values(body) for body in (call.request, call.response)):
        return {}
    reading = spoken.Reading(call, call.protocol in _MODELS)
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(_STEPS)  # only here: json.loads of a hostile file would go so deep that Python ends without an answer
    try:
        (_MODELS.get(call.protocol) or _OTHERS.get(call.protocol) or saidmcp.read)(reading)
        return reading.result()
    finally:
        sys.setrecursionlimit(before)


def _has_too_many_values(body):
    """By the commas and opening brackets outside of strings. A string ends at the end of a line, too."""
    begin = body.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n")[:1]
    most = canonical.MAX_VALUES if begin in (b"{", b"[") else 8 * canonical.MAX_VALUES
    return len(body) > most and sum(map(_STRING.sub(b"", body).count, (b",", b"[", b"{"))) > most


def _call(line):
    own = json.loads(line)
    request, response = (base64.b64decode(own.get(name, "")) for name in ("request", "response"))
    return Call(own["protocol"], own.get("path", ""), own.get("status", 0), request, response, own.get("request_type", ""), own.get("response_type", ""))


def main():
    for line in sys.stdin:
        print(canonical.form(read(_call(line))).decode("utf-8"))


if __name__ == "__main__":
    main()
