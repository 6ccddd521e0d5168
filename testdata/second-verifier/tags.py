"""What a log counts of actors and subjects: section "Actors and subjects" of docs/format.md."""

import log
from payload import ACTS
from report import REFUTED


def actor_tag(record):
    """The tag of who acted."""
    return log.actor_tag(record.role, record.actor)


def check(opened, findings):
    """Holds the log's counts against the records of a file, unless their places are refuted."""
    if findings.log is None or any((item["guarantee"], item["status"]) == ("order", REFUTED) for item in findings.details):
        return
    placed = sorted((record for record in opened.records if record.log), key=lambda record: int(record.log["index"]))
    followed = _Followed(opened.records, findings)
    for record in placed:
        followed.take(record)


class _Followed:
    def __init__(self, records, findings):
        self.findings = findings
        self.first = {record.get("chain_id"): record for record in records if record.log and record.log.get("chain_seq") == 1}
        self.by_id = {record.id: record for record in records}
        self.last = {}  # by what is counted and its tag: place and number
        self.from_place, self.counted = -1, False

    def take(self, record):
        place = int(record.log["index"])
        if "actor_seq" not in record.log:
            self.from_place = place
            if self.counted:
                self.findings.refute("order", "count", record)
            return
        self.counted = True
        self._number(record, place, "actor_seq", actor_tag(record))
        if "subject_seq" in record.log:
            self._number(record, place, "subject_seq", record.log["subject"])
        known, wanted = self._judges(record)
        if known and wanted != record.log.get("subject"):
            self.findings.refute("order", "subject", record)

    def _number(self, record, place, name, tag):
        """The log counts each place at most once."""
        before, number = self.last.get((name, tag), (self.from_place, 0))
        now = int(record.log[name])
        if not number < now <= number + place - before:
            self.findings.refute("order", "count", record)
        self.last[name, tag] = (place, now)

    def _judges(self, record):
        """Whether the file shows whom a record judges, and the tag."""
        if record.action == "key_event":
            return True, named(record.payload)
        if record.action == "final_judgment":
            return self._on_trial(record, record.get("chain_id"))
        if record.action != "human_review":
            return True, None
        if _is_trial(record):
            return self._on_trial(record, record.get("chain_id"))
        known, original = self._earlier(record, self.by_id.get(record.get("original_response_id")))
        if original is None or record.named() and original.digest not in record.named():
            return known, None
        if _is_trial(original):
            return self._on_trial(record, original.get("chain_id"))
        return True, _seen(original) or actor_tag(original)

    def _on_trial(self, record, chain):
        known, first = self._earlier(record, self.first.get(chain))
        if first is None or first.action != "submission":
            return known, None
        return True, named(first.payload)

    @staticmethod
    def _earlier(record, other):
        """Whether it is known if the log had the other record before this one, and the other record if it had."""
        if other is None or not other.log:
            return False, None
        return True, other if int(other.log["index"]) < int(record.log["index"]) else None


def _seen(record):
    """The tag of the agent that a recorder saw, if reviews of the act judge it."""
    observed = record.get("observed") or {}
    return log.actor_tag("agent", observed["agent"]) if "judged" in observed else None


def _is_trial(record):
    return record.get("chain_id", "").startswith("trial-")


def named(payload):
    """The tag of the actor that a submission or a key event names; None if it names none."""
    response = _object(payload["response"])
    if payload["action_type"] == "submission":
        name = _on_trial_in(response)
        return log.actor_tag("agent", name) if name else None
    role, name = _text(response.get("role")), _text(response.get("name"))
    return log.actor_tag(role, name) if response.get("event") == "revoked" and role and name else None


def _on_trial_in(response):
    """The agent that acts first in records that are submitted, or the agent of the card."""
    records = response.get("records")
    for exhibit in records if isinstance(records, list) else []:
        inner = _object(_object(exhibit).get("payload"))
        act = ACTS.get(_text(inner.get("action_type")))
        if act and act.role == "agent" and _text(inner.get("agent_id")):
            return inner["agent_id"]
        if act and act.role == "recorder" and _text(_object(inner.get("observed")).get("agent")):
            return inner["observed"]["agent"]
    return _text(_object(response.get("agentCard")).get("name"))


def _object(value):
    return value if isinstance(value, dict) else {}


def _text(value):
    return value if isinstance(value, str) else ""


def are_counted(entries, records, guarantee, findings):
    """Whether the entries of a log count its actors and subjects as they must; refutes what is counted falsely."""
    by_tag, right = {}, not any("actor" in before and "actor" not in entry for before, entry in zip(entries, entries[1:]))
    for entry in entries:
        for name in {"actor", "subject"} & set(entry):
            by_tag.setdefault((name, entry[name]), []).append(int(entry[name + "_seq"]))
    if not right:
        findings.refute(guarantee, "count")
    for record in records:
        for tag in [("actor", actor_tag(record)), ("subject", (record.log or {}).get("subject"))]:
            numbers = by_tag.pop(tag, [])
            if numbers != list(range(1, len(numbers) + 1)):
                findings.refute(guarantee, "count", record)
                right = False
    return right
