"""What made an answer: guarantee configuration, section "Configuration" of docs/format.md."""

import re

import report
from canonical import form

_STATED = ("model", "model_version", "parameters")
_OF_SEATS = ("evaluation", "statement", "judge_opinion")
_ASKED = (*"model_output recommendation proposal instruction api_call tool_plan message chain_step".split(), *_OF_SEATS)


def check(records, unread, findings):
    """Judges every record that states a configuration; unread holds the acts whose bodies cannot be read."""
    asked = [record for record in records if is_asked(record)]
    if not asked:
        return
    findings.ask("configuration")
    by_digest = {record.digest: record for record in reversed(records)}
    for record in asked:
        if any(findings.of(guarantee, record) != report.PROVED for guarantee in ("content", "authentication")):
            findings.doubt("configuration", "rests", record)
        if record.action == "chain_step" and not all(name in record.payload for name in _STATED):
            findings.doubt("configuration", "unstated", record)
        elif record.action in _OF_SEATS and not _is_stand_in(record):
            _check_seat(record, by_digest, unread, findings)


def is_asked(record):
    return record.action in _ASKED


def _is_stand_in(record):
    body = record.payload["response"]
    evaluation = body.get("updatedEvaluation") if record.action == "statement" else body
    return isinstance(evaluation, dict) and evaluation.get("fallback") is True


def _check_seat(record, by_digest, unread, findings):
    opening = by_digest.get(record.get("previous_record"))
    if opening is None or opening.action != "phase_opening" or opening in unread:
        findings.doubt("configuration", "seat", record)
        return
    settings = opening.payload["response"]["settings"]
    seats = settings["seats"] if record.action != "judge_opinion" else [settings[name] for name in ("judge",) if name in settings]
    seat = next((seat for seat in seats if seat["jurorId"] == record.actor), None)
    if seat is None:
        findings.doubt("configuration", "seat", record)
        return
    if form(seat["parameters"]) != form(record.payload["parameters"]):
        findings.refute("configuration", "parameters", record)
    elif not is_of_seat(record.payload["model"], seat["model"]):
        findings.doubt("configuration", "model", record)


_MONTH, _DAY = "(?:0[1-9]|1[0-2])", "(?:0[1-9]|[12][0-9]|3[01])"
_SNAPSHOT = re.compile(
    rf"(?:@[0-9A-Za-z._-]+|[-:](?:latest|20[0-9]{{2}}-{_MONTH}-{_DAY}|20[0-9]{{2}}{_MONTH}{_DAY}|{_MONTH}-{_DAY}|{_MONTH}-20[0-9]{{2}}"
    rf"|{_MONTH}{_DAY}|[2-9][0-9]{_MONTH}|0[0-9]{{2}}))?"
)
_VENDOR = re.compile(r"[a-z-]*\.")
_ROUTE = re.compile(r"([^:]*):[A-Za-z][^:]*|([^:]*)-v[0-9]+:[0-9]+", re.DOTALL)


def is_of_seat(model, configured):
    """Whether a model is the configured one, or a snapshot of it, whatever a gateway has before and after its name."""
    names = [configured, configured.rpartition("/")[2]]
    while match := _VENDOR.match(names[-1]):
        names.append(names[-1][match.end() :])
    routed = [match[1] or match[2] or "" for match in map(_ROUTE.fullmatch, names) if match]
    return any(_is_named(model, name) for name in names + routed)


def _is_named(model, configured):
    alias = configured.removesuffix("-latest").removesuffix(":latest")
    if alias == "":
        return False
    return model == configured or model.startswith(alias) and _SNAPSHOT.fullmatch(model[len(alias) :]) is not None
