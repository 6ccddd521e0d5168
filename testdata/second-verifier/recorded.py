"""What recorders saw: guarantee vantage, section "Recorded acts" of docs/format.md."""

import facts
import payload as payloads
import recorders
from canonical import Refused, form
from shapes import digest_of

MAX_WINDOW = 128 << 20
MAX_COPIED = 2 << 30
_BESIDE = {"prompt", "response", "context", "tools_used"}
_OBSERVED = ("usage", "finish", "calls", "context_by_reference")
_OPEN = ("missing", "withheld", "unsealed", "truncated", "masked")


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
            try:
                self.pieces = recorders.pieces(value)
            except Refused:
                self.rule = "digest"

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
        if digest_of(body) != recorders.sealed(self.part) or short:
            self.rule = "digest"
            return
        self.body = body
        window.keep(recorders.sealed(self.part), body)


def check(records, findings):
    """Judges every record of a recorder, and returns those that tell of acts that are in no record."""
    judged = [record for record in records if payloads.role_of(record.payload) == "recorder"]
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
    try:
        recorders.check_event(response)
    except Refused:
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
    if known and _differs(record, _found(record, bodies)):
        return "refuted"
    if observed["fidelity"] != "bytes":
        return "second-hand"
    if observed["agent"] == record.payload["agent_id"]:
        return "recorder-agent"
    for rule in _OPEN:
        if rule in rules:
            return rule
    if recorders.read_differently(observed):
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


def _differs(record, found):
    """Whether the record states a fact that its bytes do not say."""
    return any(name not in found or form(value) != form(found[name]) for name, value in _stated(record).items())
