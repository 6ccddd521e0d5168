"""The bodies of acts of the operator: section "Acts of the operator" of docs/format.md. Verification reads none of them; who asks the log how
long records are kept does."""

from shapes import MAX_WHOLE, is_digest_not_zero, is_name, is_time, is_uuid7, is_whole, members, require

RETENTION_CHAIN = "operator-retention"
_MIN_DAYS = 183


def _is_filled(value):
    return isinstance(value, str) and value != ""


def _is_days(value):
    return is_whole(value, _MIN_DAYS, MAX_WHOLE)


def _is_gone(value):
    members(value, ("archive", "before", "count", "from", "replaces", "to"))
    require(is_digest_not_zero(value["archive"]) and is_digest_not_zero(value["replaces"]), "no digests of files")
    require(value["archive"] != value["replaces"], "the file is the same")
    require(is_time(value["before"]), "before is no time")
    require(is_whole(value["from"], 0, MAX_WHOLE) and is_whole(value["to"], 0, MAX_WHOLE), "from or to is no index")
    return is_whole(value["count"], 1, value["to"] - value["from"])


# What each event is about: what it must say, and what it may.
_RETENTION = {
    "held": ({}, {"chain": is_name, "record": is_digest_not_zero}),
    "released": ({"hold": is_uuid7}, {}),
    "kept": ({"days": _is_days}, {}),
    "expired": ({"gone": _is_gone}, {}),
}


def check_retention(chain, body):
    """Refuses what is no retention_event."""
    require(chain == RETENTION_CHAIN, "not in its chain")
    require(isinstance(body, dict) and isinstance(body.get("event"), str) and body["event"] in _RETENTION, "no such event")
    must, may = _RETENTION[body["event"]]
    members(body, ("by", "event", "reason", *must), tuple(may))
    require(_is_filled(body["by"]) and _is_filled(body["reason"]), "by or reason is empty")
    require(not ("chain" in body and "record" in body), "a chain and a record")
    for name, is_one in (must | may).items():
        require(name not in body or is_one(body[name]), f"{name} is not what it must be")
