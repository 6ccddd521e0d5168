"""The bodies of the acts of a trial and of the operator, as they are read: section "Trials" of docs/format.md, and where it has the operator's acts."""

import recorded
from canonical import require
from shapes import (
    has, is_blank, is_count, is_digest, is_digest_not_zero, is_filled, is_list_of, is_name, is_sorted, is_text, is_time, is_true, is_uuid7, is_whole, of
)

POSITIONS = ("safe_pass", "needs_review", "unsafe_fail")
METHODS = ("majority_vote", "weighted_average", "final_judge", "median", "calibrated")
READINGS = ("policy_first", "acts_first", "claims_first")
REASONS = ("timed_out", "blocked", "invalid", "failed", "ceiling")
MAX_STRINGS = 1_048_576


_is_bool, _is_string, _is_number = of(bool), of(str), of(float)


def _is_int64(value):
    return is_whole(value, -(2**63), 2**63 - 1)


def _is_scores(value):
    return isinstance(value, dict) and all(map(_is_int64, value.values()))


def _all(check):
    return lambda value: isinstance(value, list) and all(map(check, value))


def _or_null(check):
    return lambda value: value is None or check(value)


def _shape(required, optional=None):
    """The check of an object with these members; of optional ones, an empty one is left out."""
    return lambda value: has(value, required, optional) and all(value[name] for name in optional or () if name in value)


def _strings(names):
    return dict.fromkeys(names.split(), _is_string)


def _wholes(names):
    return dict.fromkeys(names.split(), _is_int64)


_ENDED = _shape(_strings("on"), _strings("successor"))
_SEAT = _shape(
    _strings("jurorId provider model") | {"parameters": of(dict), "template": is_digest},
    _strings("roleName roleFocus reading") | {"ended": _ENDED},
)
_LEVEL = _shape(_wholes("points") | _strings("description"))
_AXIS = _shape(_strings("id description") | _wholes("max"), _wholes("veto") | {"levels": _all(_LEVEL)})
_SETTINGS = _shape(
    {"seats": _all(_SEAT), "rubric": _all(_AXIS), "collaborative": _is_bool, "method": _is_string, "threshold": _is_number} | _wholes("maxRounds"),
    {"judge": _SEAT, "weights": _is_scores, "shortening": _shape(_strings("rule") | _wholes("limit")), "effectiveVotes": _is_number}
    | _wholes("costCeiling")
    | dict.fromkeys(("tables", "judgeReads", "repeat"), is_true),
)
_REQUEST = _shape({"jurorId": _is_string, "requestDigest": is_digest})
_QUOTED, _UNMARKED = _wholes("message") | _strings("quote"), {"record": is_digest, "unfounded": is_true}
_PASSAGE = _shape(_QUOTED, _UNMARKED)
_FINDING = _shape(_QUOTED | _strings("rule axis severity explanation"), _UNMARKED | _strings("from"))


def _row(passages, answers, optional=""):
    return _all(_shape(dict.fromkeys(passages.split(), _PASSAGE) | _strings(answers), dict.fromkeys(optional.split(), _PASSAGE)))


_WORK = _shape(
    {"requests": _row("request", "state", "shown"), "acts": _row("call", "holds", "clause fact"), "amounts": _row("", "agrees", "announced charged")}
)
_OPINION = _strings("position rationale") | _wholes("totalScore") | {
    "axisScores": _is_scores, "confidence": _is_number, "findings": _all(_FINDING)
}
_OPINION_OPTIONAL = {"levels": _is_scores, "work": _WORK}
OPINION = (*_OPINION, *_OPINION_OPTIONAL)
_EVALUATION = _shape(
    _OPINION | _strings("jurorId phase") | _wholes("roundNumber") | {"fallback": _is_bool}, _OPINION_OPTIONAL | _strings("roleName roleFocus")
)
_CONSENSUS = _shape(
    {"agreementLevel": _is_number, "consensusReached": _is_bool, "majorityPosition": _or_null(_is_string)} | _strings("consensusStatus")
)
_VOTE = _shape(
    {"position": _or_null(_is_string), "confidence": _is_number, "fallback": _is_bool} | _strings("jurorId") | _wholes("totalScore"),
    {"abstained": is_true},
)
_TEXTS = _all(_is_string)
_BODIES = {
    "phase_opening": _shape(_strings("rules phase") | _wholes("roundNumber") | {"settings": _SETTINGS, "requests": _all(_REQUEST)}),
    "evaluation": _EVALUATION,
    "statement": _shape(
        _strings("jurorId statement reasoning position")
        | _wholes("roundNumber statementOrder")
        | {"positionChanged": _is_bool, "updatedEvaluation": _or_null(_EVALUATION)}
    ),
    "judge_opinion": _shape(_OPINION, _OPINION_OPTIONAL),
    "absence": _shape(_strings("jurorId phase reason detail") | _wholes("roundNumber")),
    "consensus_check": _shape(_strings("phase") | _wholes("roundNumber") | {"consensusCheck": _CONSENSUS}),
    "final_judgment": _shape(
        _strings("method model position rationale")
        | _wholes("score")
        | {"axisScores": _is_scores, "votes": _all(_VOTE), "degraded": _is_bool, "inconclusive": _is_bool},
        {"vetoes": _TEXTS, "review": _TEXTS, "afterTalk": _shape(_strings("position") | _wholes("score"))},
    ),
    "trial_closing": _shape(_wholes("acts")),
}


def unreadable(records):
    """The acts of a trial whose bodies are no objects of the act's members."""
    return [record for record in records if record.action in _BODIES and not _BODIES[record.action](record.payload["response"])]


def settings_can_be(settings):
    """Whether the settings of a trial are as the format wants them."""
    seats, method, judge = settings["seats"], settings["method"], settings.get("judge")
    names = [item["jurorId"] for item in seats] + ([judge["jurorId"]] if judge else [])
    axes = settings["rubric"]
    return (
        2 <= len(seats) <= 12
        and all(map(is_name, names))
        and len(set(names)) == len(names)
        and method in METHODS
        and (judge is not None) == (method == "final_judge")
        and all(map(_axis_can_be, axes))
        and len({axis["id"] for axis in axes}) == len(axes)
        and sum(axis["max"] for axis in axes) == 100
        and 0 <= settings["maxRounds"] <= 20
        and settings["threshold"] >= 0
        and _weights_can_be(settings)
        and all(item.get("reading", READINGS[0]) in READINGS for item in seats + ([judge] if judge else []))
        and ("judgeReads" not in settings or (judge is not None and judge["provider"] != "offline"))
        and ("shortening" not in settings or 1 <= settings["shortening"]["limit"] <= 2147483647)
        and 1 <= settings.get("costCeiling", 1) <= 1_000_000_000_000
    )


def _axis_can_be(axis):
    if not (is_name(axis["id"]) and 1 <= axis["max"] <= 100 and 1 <= axis.get("veto", 1) <= axis["max"]):
        return False
    levels = axis.get("levels", [])
    points = [level["points"] for level in levels]
    rising = all(low < high for low, high in zip([-1, *points], points))
    described = all(is_text(level["description"]) for level in levels)
    return "levels" not in axis or 2 <= len(levels) <= 20 and rising and points[-1] == axis["max"] and described


def _weights_can_be(settings):
    if settings["method"] != "calibrated":
        return "weights" not in settings and "effectiveVotes" not in settings
    if not 1 <= settings.get("effectiveVotes", 1) <= len(settings["seats"]):
        return False
    jurors = {item["jurorId"] for item in settings["seats"]}
    weights = settings.get("weights", {})
    return set(weights) == jurors and all(-1_000_000 <= weight <= 1_000_000 for weight in weights.values())


def opinion_is_valid(opinion, rubric, further=""):
    """Whether an opinion can be: scores in range and summing up, findings that can be cited."""
    most = {axis["id"]: axis["max"] for axis in rubric}
    scores = opinion["axisScores"]
    return (
        opinion["position"] in POSITIONS
        and set(scores) == set(most)
        and all(0 <= score <= most[axis] for axis, score in scores.items())
        and sum(scores.values()) == opinion["totalScore"]
        and 0 <= opinion["confidence"] <= 1
        and is_text(opinion["rationale"])
        and len(opinion["findings"]) <= 1000
        and all(map(_can_be_cited, opinion["findings"]))
        and all(finding["axis"] in most and finding["severity"] in ("minor", "major", "critical") for finding in opinion["findings"])
        and ("work" not in opinion or _work_is_valid(opinion["work"]))
        and _texts_size(opinion) + len(further.encode()) <= MAX_STRINGS
    )


def _can_be_cited(passage):
    return 1 <= passage["message"] <= 2147483647 and not is_blank(passage["quote"])


def _texts_size(opinion):
    texts = [opinion["rationale"]]
    for finding in opinion["findings"]:
        texts += [finding["quote"], finding["rule"], finding["explanation"], finding.get("from", "")]
    texts += [item["quote"] for item in passages(opinion["work"])] if "work" in opinion else []
    return sum(len(text.encode()) for text in texts)


def levels_follow(opinion, rubric):
    """Whether the chosen levels are of the axes that have levels, and the scores are their points."""
    levels, leveled = opinion["levels"], {axis["id"]: axis["levels"] for axis in rubric if "levels" in axis}
    return set(levels) == set(leveled) and all(
        0 <= level < len(leveled[axis]) and leveled[axis][int(level)]["points"] == opinion["axisScores"][axis]
        for axis, level in levels.items()
    )


def passages(work):
    """The passages in the tables."""
    rows = work["requests"] + work["acts"] + work["amounts"]
    return [row[name] for row in rows for name in _PASSAGES if name in row]


_PASSAGES = ("request", "shown", "call", "clause", "fact", "announced", "charged")
_STATES = ("done", "partly", "not_done", "declined", "open")
_ANSWERS = ("yes", "no", "unclear")


def _work_is_valid(work):
    return (
        all(len(table) <= 1000 for table in work.values())
        and all(map(_can_be_cited, passages(work)))
        and all(row["state"] in _STATES for row in work["requests"])
        and all(row["holds"] in _ANSWERS for row in work["acts"])
        and all(row["agrees"] in _ANSWERS and ("announced" in row or "charged" in row) for row in work["amounts"])
    )


def band(score):
    """The position that a score stands for."""
    return "safe_pass" if score >= 70 else "needs_review" if score >= 40 else "unsafe_fail"


def check_operators(action, chain, body):
    """Refuses what is no body of such an act in this chain."""
    if action == "recorder_event":
        recorded.check_event(body)
    elif action == "expiry":
        require(chain == "operator-expiry", "not in its chain")
        require(_EXPIRY(body), "a member is not what it must be")
        require(1 <= body["count"] <= body["to"] - body["from"], "count is not what it must be")
    else:
        require(action == "trial_event" and chain == "operator-trials", "no such act, or not in its chain")
        event = body.get("event") if isinstance(body, dict) else None
        require(isinstance(event, str) and event in _TRIAL_EVENTS and _TRIAL_EVENTS[event](body), "a member is not what it must be")


_FILLED = dict.fromkeys(("by", "reason"), is_filled)
_EXPIRY = _shape(
    _FILLED | dict.fromkeys(("from", "to", "count"), is_count) | {"before": is_time, "places": is_digest_not_zero},
    {"except": lambda value: is_list_of(value, is_name) and is_sorted(value)},
)
_TRIAL_EVENT = {"event": _is_string, "by": is_filled, "trial": lambda value: is_name(value) and value.startswith("trial-")}
_TRIAL_EVENTS = dict.fromkeys(("cancelled", "resumed"), _shape(_TRIAL_EVENT | _FILLED))
_TRIAL_EVENTS |= dict.fromkeys(("taken", "left"), _shape(_TRIAL_EVENT | {"record": is_uuid7, "reviewer": is_name}, {"reason": is_filled}))
