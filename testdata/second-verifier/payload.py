"""What a payload must be: sections "Payload", "Action types" and "Commitments" of docs/format.md."""

import hashlib
import hmac
import re

import properties
import recorded
import sigma
from canonical import check_bounds, form, require
from shapes import MAX_WHOLE, has, is_digest_not_zero, is_list_of, is_name, is_sorted, is_time, is_uuid7, is_whole, members, of, one_of

SCHEMA = "jurat/evidence/v1"
ALGORITHMS = ("RS256", "ES256", "Ed25519", "ML-DSA-65")
APPROVALS = ("approved", "approved_with_modifications", "rejected")
_COMMITMENT = re.compile(r"hmac-sha256:[0-9a-f]{64}\Z")
_KIND = re.compile("integer|date|time|text|decimal:[1-9]")


class Act:
    """A row of the table of action types; the role is that whose keys sign."""

    def __init__(self, role, required, optional="", apart=""):
        self.role, self.required, self.optional, self.apart = role, set(required.split()), set(optional.split()), set(apart.split())


_OUTPUT = Act(
    "agent",
    "agent_id request_id timestamp model model_version prompt response parameters",
    "context tools_used",
    "prompt context response tools_used metadata",
)
_STEP = Act(
    "agent",
    "agent_id request_id response chain_position timestamp",
    "model model_version prompt context parameters tools_used",
    "prompt context response tools_used metadata",
)
_REVIEW = Act(
    "reviewer",
    "reviewer_id timestamp original_response_id approval_status",
    "request_id context modified_response changes case",
    "context modified_response changes metadata",
)
_DELIVERY = Act("agent", "agent_id response saw timestamp", "request_id context original_response_id case", "context response metadata")
_CLERK = Act("clerk", "agent_id timestamp chain_id chain_position previous_record case response")
_ASKED = (
    "agent_id request_id timestamp model model_version parameters response chain_id chain_position previous_record saw case request_digest"
)
_OBSERVED = Act(
    "recorder",
    "agent_id request_id timestamp observed",
    "model model_version prompt context response parameters tools_used request_body response_body",
    "prompt context response tools_used request_body response_body metadata",
)
ACTS = {
    "chain_step": _STEP,
    "human_review": _REVIEW,
    "delivery": _DELIVERY,
    "submission": Act("submitter", "agent_id timestamp chain_id chain_position case response", apart="response"),
    "judge_opinion": Act("judge", _ASKED),
    "recorder_event": Act("recorder", "agent_id timestamp response"),
}
ACTS |= dict.fromkeys("model_output recommendation proposal instruction api_call tool_plan message".split(), _OUTPUT)
ACTS |= dict.fromkeys("phase_opening absence consensus_check final_judgment trial_closing".split(), _CLERK)
ACTS |= dict.fromkeys(("evaluation", "statement"), Act("juror", _ASKED))
ACTS |= dict.fromkeys("late_stamp checkpoint_stamp key_event erasure access_event trial_event expiry".split(), Act("operator", "agent_id timestamp response"))
ACTS |= dict.fromkeys("observed_call observed_tool observed_message observed_span".split(), _OBSERVED)
TRIAL_ROLES = ("submitter", "clerk", "juror", "judge")
_ALWAYS = {"schema", "record_id", "action_type", "signers"}
_EVERYWHERE = set("chain_id chain_position previous_agent next_agent parent_request_id previous_record saw metadata sealed_apart provable".split())


def check(payload):
    """Refuses what is no payload."""
    require(isinstance(payload, dict), "the payload is no object")
    check_bounds(payload)
    action = payload.get("action_type")
    require(isinstance(action, str) and action in ACTS, "no such action_type")
    act = ACTS[action]
    members(payload, _ALWAYS | act.required, _EVERYWHERE | act.optional)
    for name, value in payload.items():
        require(FORMS[name](value), f"{name} is not what it must be")
    apart = _check_apart(payload, act)
    _check_beyond_members(payload, act, apart)


def _check_beyond_members(payload, act, apart):
    """The rules that go beyond single members."""
    chain, of_trial = payload.get("chain_id", ""), act.role in TRIAL_ROLES or payload["action_type"] in ("human_review", "delivery")
    require(not chain.startswith("trial-") or of_trial, "the chain is that of a trial")
    require(not chain.startswith("operator-") or act.role == "operator", "the chain is the operator's")
    modified = payload.get("approval_status") == "approved_with_modifications"
    require(not modified or "modified_response" in payload, "modified_response is missing")
    if "observed" in payload:
        told = payload["observed"]["vantage"] == "telemetry"
        require(told == (payload["action_type"] == "observed_span"), "the vantage does not fit the act")
        require(("side" in payload["observed"]) == (payload["action_type"] == "observed_message"), "the side does not fit the act")
    an_object = act.role in TRIAL_ROLES + ("operator",) or payload["action_type"] == "recorder_event"
    require(not an_object or "/response" in apart or isinstance(payload["response"], dict), "response must be an object")
    require("/tools_used" in apart or isinstance(payload.get("tools_used", []), list), "tools_used must be an array")


def _check_apart(payload, act):
    """Refuses pointers in sealed_apart that name nothing that may be, or is, sealed apart."""
    pointers = payload.get("sealed_apart", [])
    for pointer in pointers:
        value = _at(payload, act, pointer)
        require(isinstance(value, str) and bool(_COMMITMENT.match(value)), f"{pointer} holds no commitment")
    for item in payload.get("provable", []):
        require(item["pointer"] in pointers, f"{item['pointer']} is not sealed apart")
    return pointers


def _at(payload, act, pointer):
    parts = pointer.split("/")
    require(parts[0] == "" and len(parts) in (2, 3) and parts[1] in act.apart, f"{pointer} cannot be sealed apart")
    if len(parts) == 2:
        require(parts[1] != "metadata" and parts[1] in payload, f"{pointer} is not there")
        return payload[parts[1]]
    require(parts[1] == "metadata" and parts[2] != "", f"{pointer} cannot be sealed apart")
    require(not re.search(r"~(?![01])", parts[2]), f"{pointer} is no JSON pointer")
    name = parts[2].replace("~1", "/").replace("~0", "~")
    require(name in payload.get("metadata", {}), f"{pointer} is not there")
    return payload["metadata"][name]


def _is_second(item):
    """Whether it is a second commitment, with what it is of."""
    strings = dict.fromkeys(("commitment", "kind", "pointer"), of(str))
    return has(item, strings) and bool(_KIND.fullmatch(item["kind"])) and properties.is_commitment(item["commitment"])


def _is_signers(value):
    signer = {"alg": one_of(*ALGORITHMS), "key_id": is_digest_not_zero}
    return is_list_of(value, lambda item: has(item, signer), 16) and len({item["key_id"] for item in value}) == len(value)


FORMS = {
    "schema": one_of(SCHEMA),
    "record_id": is_uuid7,
    "action_type": lambda value: True,
    "signers": _is_signers,
    "timestamp": is_time,
    "parameters": of(dict),
    "metadata": of(dict),
    "tools_used": of((list, str)),
    "chain_position": lambda value: is_whole(value, 1, MAX_WHOLE),
    "saw": lambda value: is_list_of(value, is_digest_not_zero) and len(set(value)) == len(value),
    "approval_status": one_of(*APPROVALS),
    "sealed_apart": lambda value: is_list_of(value, of(str)) and is_sorted([item.encode() for item in value]),
    "provable": lambda value: is_list_of(value, _is_second, 64) and is_sorted([item["pointer"].encode() for item in value]),
    "observed": recorded.is_observed,
    "request_body": recorded.is_body,
    "response_body": recorded.is_body,
}
_NAMES = "agent_id reviewer_id request_id model model_version chain_id previous_agent next_agent parent_request_id original_response_id"
FORMS |= dict.fromkeys(_NAMES.split(), is_name)
FORMS |= dict.fromkeys("prompt context response modified_response changes".split(), of((str, dict, list)))
FORMS |= dict.fromkeys("previous_record case request_digest".split(), is_digest_not_zero)


def commitment(pointer, salt, value):
    """What stands in a payload in place of a value that is sealed apart."""
    return "hmac-sha256:" + hmac.new(salt, pointer.encode() + b"\0" + form(value), hashlib.sha256).hexdigest()


def opens(payload, disclosure):
    """Whether a disclosure gives its commitment. The pointer is known to be listed."""
    held = _at(payload, ACTS[payload["action_type"]], disclosure["pointer"])
    return commitment(disclosure["pointer"], disclosure["salt"], disclosure["value"]) == held


def opens_second(payload, disclosure):
    """Whether a disclosure gives the second commitment, too, if there is one."""
    for item in payload.get("provable", []):
        if item["pointer"] == disclosure["pointer"]:
            try:
                given = properties.commitment(item["kind"], item["pointer"], disclosure["value"], disclosure["salt"])
            except properties.NoProof:
                return False
            return "p256:" + sigma.written(given).hex() == item["commitment"]
    return True
