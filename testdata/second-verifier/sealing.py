"""Vectors of what goes into a record: canonical forms, commitments, digests, imprints, signatures, log entries."""

import base64
import hashlib
import json

import files
import keys
import log
import payload
import recorders
from canonical import form, parse, Refused
from shapes import digest_of, is_digest_not_zero, is_name, is_time, is_uuid7, is_whole, MAX_WHOLE, members, require


def compare(manifest, folder):
    """For each vector its name, what was found, and what is wanted."""
    if "canonical" in manifest:
        for vector in json.loads((folder / manifest["canonical"]).read_text(encoding="utf-8")):
            yield f"canonical: {vector['name']}", _canonical(vector), _wanted(vector)
    for vector in manifest.get("commitments", []):
        made = payload.commitment(vector["pointer"], bytes.fromhex(vector["salt"]), parse(vector["value"].encode()))
        yield f"commitment: {vector['pointer']}", {"commitment": made}, {"commitment": vector["commitment"]}
    spki = {key["key_id"]: base64.b64decode(key["spki"]) for key in manifest.get("keys", [])}
    for key_id, key in spki.items():
        yield f"key: {key_id}", {"key_id": digest_of(key)}, {"key_id": key_id}
    for vector in manifest.get("records", []):
        yield f"record: {vector['name']}", _record(vector, spki, folder), _wanted_record(vector, folder)
    for vector in manifest.get("acts", []):
        yield f"act: {vector['name']}", _act(vector), {"refused": vector.get("refused", False)}
    for vector in manifest.get("observed", []):
        yield vector["name"], {"refused": not payload.is_member(vector["member"], parse(vector["value"].encode()))}, {"refused": vector.get("refused", False)}
    for vector in manifest.get("bundles", []):
        opened = files.open_file((folder / vector["file"]).read_bytes())
        names = {item["digest"]: item["name"] for item in manifest["records"]}
        yield f"bundle: {vector['name']}", {"records": [names[item.digest] for item in opened.records]}, {
            "records": vector["records"]
        }


def _canonical(vector):
    try:
        made = form(parse(base64.b64decode(vector["document"])))
    except Refused:
        return {"refused": True}
    return {"canonical": base64.b64encode(made).decode(), "digest": digest_of(made)}


def _wanted(vector):
    if "refused" in vector:
        return {"refused": True}
    return {"canonical": vector["canonical"], "digest": vector["digest"]}


def _act(vector):
    try:
        require(vector["action_type"] in CHECKS, "not such an act")
        CHECKS[vector["action_type"]](vector["chain_id"], parse(vector["response"].encode()))
    except Refused:
        return {"refused": True}
    return {"refused": False}


def _record(vector, spki, folder):
    record = files.open_file((folder / vector["file"]).read_bytes()).records[0]
    record.log = vector["log_counts"]
    try:
        valid = all(
            keys.is_valid(signer["alg"], spki[signer["key_id"]], record.message, signature)
            for signer, signature in zip(record.payload["signers"], record.signatures)
        )
    except keys.Unsupported as err:
        return {"unsupported": str(err)}
    return {
        "canonical": record.message.decode(),
        "digest": record.digest,
        "signatures": [signature.hex() for signature in record.signatures],
        "valid": valid,
        "imprint": hashlib.sha256(b"".join(record.signatures)).hexdigest(),
        "entry": log.entry(record).decode(),
        "disclosed": all(payload.opens(record.payload, item) for item in record.disclosures),
    }


def _wanted_record(vector, folder):
    return {
        "canonical": (folder / vector["canonical"]).read_text(encoding="utf-8"),
        "digest": vector["digest"],
        "signatures": vector["signatures"],
        "valid": True,
        "imprint": vector["imprint"],
        "entry": (folder / vector["log_entry"]).read_text(encoding="utf-8"),
        "disclosed": True,
    }


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
