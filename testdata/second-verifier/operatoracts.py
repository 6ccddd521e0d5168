"""The bodies of acts of the operator: section "Acts of the operator" of docs/format.md. Verification reads none of them; who asks the log which
records expired, or which certificates a CA issued, does."""

import re

import recorders
from shapes import MAX_WHOLE, is_digest_not_zero, is_name, is_time, is_uuid7, is_whole, members, moment, require, unbase64

EXPIRY_CHAIN = "operator-expiry"
CERTIFICATES_CHAIN = "operator-certificates"
TRIALS_CHAIN = "operator-trials"
_MAX_CERTIFICATE = 65536
_SERIAL = re.compile(r"[1-9a-f][0-9a-f]{0,39}\Z")
_NUMBER = re.compile(r"(?:0|[1-9][0-9]{0,48})\Z")
_CAUSES = (
    "unspecified",
    "keyCompromise",
    "cACompromise",
    "affiliationChanged",
    "superseded",
    "cessationOfOperation",
    "certificateHold",
    "privilegeWithdrawn",
    "aACompromise",
)


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


def _is_certificate(value):
    unbase64(value, 1, _MAX_CERTIFICATE)
    return True


def _is_serial(value):
    return isinstance(value, str) and bool(_SERIAL.match(value))


def _is_number(value):
    return isinstance(value, str) and bool(_NUMBER.match(value))


def _is_cause(value):
    return isinstance(value, str) and value in _CAUSES


_CERTIFICATE = {
    "issued": ({"certificate": _is_certificate}, {}),
    "revoked": ({"serial": _is_serial, "from": is_time, "cause": _is_cause}, {"invalid_from": is_time}),
}
_EVIDENCE = {"crl": ({"number": _is_number}, {}), "ocsp": ({"serial": _is_serial}, {})}


def _check_about(body, which, kinds, everywhere):
    """Refuses a body whose member that says which kind it is names none, or whose members are not those of the kind."""
    require(isinstance(body, dict) and isinstance(body.get(which), str) and body[which] in kinds, f"no such {which}")
    must, may = kinds[body[which]]
    members(body, ("by", "reason", which, *everywhere, *must), tuple(may))
    require(_is_filled(body["by"]) and _is_filled(body["reason"]), "by or reason is empty")
    for name, is_one in (everywhere | must | may).items():
        require(name not in body or is_one(body[name]), f"{name} is not what it must be")


def check_certificate(chain, body):
    """Refuses what is no certificate_event."""
    require(chain == CERTIFICATES_CHAIN, "not in its chain")
    _check_about(body, "event", _CERTIFICATE, {"ca": is_digest_not_zero})
    if "invalid_from" in body:
        require(moment(body["invalid_from"]) <= moment(body["from"]), "invalid_from is after from")


def check_revocation_evidence(chain, body):
    """Refuses what is no revocation_evidence."""
    require(chain == CERTIFICATES_CHAIN, "not in its chain")
    everywhere = {"ca": is_digest_not_zero, "digest": is_digest_not_zero, "this_update": is_time, "next_update": is_time}
    _check_about(body, "kind", _EVIDENCE, everywhere)
    require(moment(body["this_update"]) <= moment(body["next_update"]), "next_update is before this_update")


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
    "certificate_event": check_certificate,
    "revocation_evidence": check_revocation_evidence,
}
