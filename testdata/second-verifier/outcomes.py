"""What a trial came to: section "The outcome of a trial" of docs/format.md."""

_DECIDABLE = ("safe_pass", "unsafe_fail")


def outcome(records, findings):
    """The member trial_outcome of the report; None if there is none."""
    if findings.kind != "trial" or findings.against("verdict", "completeness"):
        return None
    found, rulings = None, {}
    for record in records:
        if record.action == "final_judgment" and found is None:
            found = _judged(record)
            rulings[record.id] = (record.digest, found["position"] if found["position"] in _DECIDABLE else None)
        elif record.action == "human_review" and found is not None:
            _decide(record, found, rulings, findings)
    return found


def _judged(record):
    body = record.payload["response"]
    verdict = {name: body[name] for name in ("position", "score", "method", "degraded", "inconclusive")}
    verdict |= {"review": body["review"]} if "review" in body else {}
    is_open = verdict["position"] not in _DECIDABLE or verdict["degraded"] or verdict["inconclusive"] or "review" in verdict
    verdict = {"record": record.id} | verdict
    return {"position": verdict["position"], "by": "jury", "open": is_open, "verdict": verdict, "decision": None, "decisions": 0}


def _decide(record, found, rulings, findings):
    digest, stood = rulings.get(record.get("original_response_id"), (None, None))
    if digest is None or digest not in record.named():
        return
    status = record.get("approval_status")
    doubted = any(
        finding["guarantee"] == "human_review" and finding.get("record") in (None, record.id) for finding in findings.details
    )
    position = {"approved": stood, "rejected": None}.get(status, _given(record)) if not doubted else None
    rulings.setdefault(record.id, (record.digest, position))
    decision = {"record": record.id, "reviewer": record.get("reviewer_id"), "at": record.get("timestamp"), "status": status}
    if position:
        decision["position"] = position
    if doubted:
        decision["doubted"] = True
    found |= {
        "position": position or "needs_review",
        "by": "person",
        "open": position is None,
        "decision": decision,
        "decisions": found["decisions"] + 1,
    }


def _given(record):
    shown, value = record.disclosed("modified_response")
    position = value.get("position") if shown and isinstance(value, dict) else None
    return position if position in _DECIDABLE else None
