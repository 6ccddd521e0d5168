"""The bodies of acts of the operator: section "Acts of the operator" of docs/format.md. Verification reads none of them; who asks the log which
records expired does."""

import recorders
from shapes import MAX_WHOLE, is_digest_not_zero, is_name, is_time, is_uuid7, is_whole, members, require

EXPIRY_CHAIN = "operator-expiry"
TRIALS_CHAIN = "operator-trials"


def _is_filled(value):
    return isinstance(value, str) and value != ""


def check_expiry(chain, body):
    """Refuses what is no expiry."""
    require(chain == EXPIRY_CHAIN, "not in its chain")
    members(body, ("before", "by", "count", "from", "places", "reason", "to"), ("except",))
    require(_is_filled(body["by"]) and _is_filled(body["reason"]), "by or reason is empty")
    require(is_time(body["before"]), "before is no time")
    require(is_digest_not_zero(body["places"]), "places is no digest")
    require(is_whole(body["from"], 0, MAX_WHOLE) and is_whole(body["to"], 0, MAX_WHOLE), "from or to is no index")
    require(is_whole(body["count"], 1, body["to"] - body["from"]), "count is not what it must be")
    if "except" in body:
        chains = body["except"]
        require(isinstance(chains, list) and bool(chains) and all(is_name(c) for c in chains), "except is no list of chains")
        require(chains == sorted(set(chains)), "except is not sorted")


def check_trial(chain, body):
    """Refuses what is no trial_event."""
    require(chain == TRIALS_CHAIN, "not in its chain")
    require(isinstance(body, dict) and body.get("event") in ("cancelled", "resumed", "taken", "left"), "no such event")
    if body["event"] in ("cancelled", "resumed"):
        members(body, ("by", "event", "reason", "trial"))
    else:
        members(body, ("by", "event", "record", "reviewer", "trial"), ("reason",))
        require(is_uuid7(body["record"]) and is_name(body["reviewer"]), "record or reviewer is none")
    require(_is_filled(body["by"]) and ("reason" not in body or _is_filled(body["reason"])), "by or reason is empty")
    require(is_name(body["trial"]) and body["trial"].startswith("trial-"), "no trial")


CHECKS = {
    "trial_event": check_trial,
    "recorder_event": lambda chain, response: recorders.check_event(response),
    "expiry": check_expiry,
}
