#!/usr/bin/env python3
"""Reputation, a second time: what docs/reputation.md says, in Python.

    python3 reputation.py FACTS...        prints the view of each file of facts, one line each
    python3 reputation.py --lines FILE    the same for a file with the facts of one log in each line
"""

import datetime
import hashlib
import itertools
import json
import math
import sys
from collections import Counter

ONE = 1 << 20
BADNESS = {"": 0, "safe_pass": 1, "needs_review": 2, "unsafe_fail": 3}
PROVED, NOT_PROVED, REFUTED = "proved", "not proved", "refuted"
WORSE = {PROVED: 0, NOT_PROVED: 1, REFUTED: 2}


def view(facts):
    """The view of facts, as an object."""
    policy, me = facts["policy"], facts["identity"]
    digests = [one["digest"] for one in facts["records"] + _judging(facts)]
    if len(set(digests)) < len(digests):
        raise ValueError("a record is there twice")
    out = _Out()
    records = _records(facts, out)
    classes = {}
    for trial in facts["trials"]:
        _trial(trial, records, facts, classes, out)
    for review in facts["reviews"]:
        _review(review, records, facts, classes, out)
    incidents = _incidents(facts, out)
    logs, outcome = _completeness(facts, out.heeded)
    numberless = outcome == REFUTED or any(one["judgments"].get("rule") == "unproved" for one in logs)
    made = [_class(key, classes[key], records, facts, outcome, numberless) for key in sorted(classes)]
    verdicts = [verdict for given in classes.values() for verdict in given["verdicts"]]
    rests = {digest for verdict in verdicts for digest in (verdict["place"]["digest"], *verdict["exhibits"])}
    return {
        "format": "jurat/reputation/v1",
        "formula": "wilson-z2/v1",
        "at": _time(facts["at"]),
        "identity": _identity(me),
        "trust": facts["trust"],
        "policy": "sha256:" + hashlib.sha256(_form(policy)).hexdigest(),
        "minimum": policy["minimum"],
        "outcome": outcome,
        "completeness": logs,
        "coverage": _coverage(made, records, logs),
        "classes": made,
        "incidents": incidents,
        "allegations": sorted(out.allegations, key=lambda one: one["record"]),
        "approvals": out.approvals,
        "left_out": sorted(out.left, key=lambda one: (one["what"].encode(), one["record"], one["rule"].encode())),
        "rests_on": sorted(rests),
    }


class _Out:
    """What does not count, and what is only shown."""

    def __init__(self):
        self.left, self.allegations, self.approvals = [], [], 0
        self.aside, self.heeded = set(), set()

    def leave(self, what, of, rule, actor=""):
        one = {"what": what, "record": of["digest"], "id": of["id"], "rule": rule}
        self.left.append(one | ({"actor": actor} if actor else {}))


def _form(value):
    """The canonical form of a value whose numbers are whole and whose names are ASCII."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()


def _judging(facts):
    """All that judges."""
    decisions = [one for trial in facts["trials"] for one in trial["decisions"]]
    return facts["trials"] + decisions + facts["reviews"] + facts["revocations"]


def _when(standing, policy):
    return standing["independent" if policy["clock"] == "independent" else "time"]


def _stands(standing, facts):
    """The rule by which something does not count; empty if it does."""
    at = _when(standing, facts["policy"])
    if not standing["proved"]:
        return standing["rule"] or "unproved"
    if at == 0:
        return "time"
    return "later" if at > facts["at"] else ""


def _records(facts, out):
    counting = {}
    for record in facts["records"]:
        rule = _stands(record, facts)
        if record["proved"] and not (_is(facts["identity"], record) and _may_tell(facts["policy"], facts["identity"], record)):
            rule = "identity"
        elif not rule:
            taken_back = [act for act in facts["revocations"] if act["proved"] and act["key_id"] in record["keys"]]
            rule = "revoked" if any(not 0 < record["independent"] < act["from"] for act in taken_back) else rule
        if rule:
            out.leave("record", record, rule)
            out.aside |= {record["digest"]} if rule in ("identity", "revoked", "later") else set()
        else:
            counting[record["digest"]] = record
    return counting


def _is(me, record):
    known = {key["key_id"] for key in me["keys"]}
    signed = record.get("recorder") or me["by"] != "keys" or set(record["keys"]) <= known
    return (me["by"], me["ca"]) == (record["by"], record["ca"]) and bool(signed)


def _may_tell(policy, me, record):
    """Whether the policy lets a recorder say what the agent did."""
    if "recorder" not in record:
        return True
    named = [one for one in policy["organisations"] if {"role": "recorder", "name": record["recorder"]} in one["actors"]]
    if named:
        return any(_belongs(one, "agent", me["name"], me["ca"]) for one in named)
    return me["by"] != "cas" or me["ca"] not in policy["shared_cas"]


def _trial(trial, records, facts, classes, out):
    exhibits = sorted({digest for digest in trial["exhibits"] if digest in records})
    own = min((_actor(rater) for rater in trial["raters"] if _own_side(rater, facts)), key=str.encode, default=None)
    if not trial["proved"]:
        out.leave("trial", trial, trial["rule"] or "unproved")
    elif trial["transcript"]:
        out.allegations.append(_allegation(trial, facts))
        _heed(trial, out)
    elif own:
        out.leave("trial", trial, "own-side", own)
        _heed(trial, out)
    elif not exhibits:
        out.leave("trial", trial, "exhibits")
        if not _lacks(trial, records, facts, out):
            _heed(trial, out)
    else:
        if not _lacks(trial, records, facts, out):
            out.heeded |= {one["digest"] for one in [trial, *trial["decisions"]] if _stands(one, facts) in ("", "later")}
        decision = _decided(trial, facts, out)
        shared = (max(len(trial["exhibits"]), 1) - 1).bit_length()
        _jury(trial, exhibits, shared, decision, facts, classes, out)
        _people(trial, exhibits, shared, decision, facts, classes, out)


def _heed(trial, out):
    out.heeded |= {one["digest"] for one in [trial, *trial["decisions"]]}


def _lacks(trial, records, facts, out):
    """Whether an exhibit is a record of the agent, by the submission or the entries, that could count and does not."""
    logged = {digest for log in facts["logs"] for digest in log["actor"]}
    own = {*trial["own"], *(digest for digest in trial["exhibits"] if digest in logged)}
    return any(one not in records and one not in out.aside for one in own)


def _about(review, records, facts, out):
    """Whether it is known of what a review is."""
    judging = {one["digest"] for one in _judging(facts)} - {one["digest"] for one in facts["revocations"]}
    return not review["names"] or any(one in records or one in out.aside or one in judging for one in review["names"])


def _allegation(trial, facts):
    submitter = min((rater["name"] for rater in trial["raters"] if rater["role"] == "submitter"), key=str.encode, default="")
    made = {"record": trial["digest"], "id": trial["id"], "position": trial["position"], "submitter": submitter}
    if last := _decided(trial, facts, _Out()):  # of a transcript's trial nothing is left out
        made |= {"decided": last["position"] or "needs_review", "reviewer": last["reviewer"]["name"]}
    return made | _unless_empty(at=_time(_when(trial, facts["policy"])), case_seq=trial["case_seq"])


def _decided(trial, facts, out):
    last = None
    for one in trial["decisions"]:
        rule = _stands(one, facts)
        if rule:
            out.leave("decision", one, rule)
        elif _own_side(one["reviewer"], facts):
            out.leave("decision", one, "own-side", _actor(one["reviewer"]))
        elif last is None or (one["index"], one["digest"]) > (last["index"], last["digest"]):
            last = one
    return last


def _jury(trial, exhibits, shared, decision, facts, classes, out):
    policy, panel = facts["policy"], trial["panel"]
    rule = _stands(trial, facts)
    if rule:
        pass
    elif trial["inconclusive"]:
        rule = "inconclusive"
    elif trial["degraded"] and trial["position"] != "unsafe_fail":
        rule = "degraded"
    elif trial.get("review") and trial["position"] == "safe_pass" and (not decision or decision["position"] != "safe_pass"):
        rule = "review"
    elif not panel["rules"] and policy["panels"] and panel["digest"] not in policy["panels"]:
        rule = "panel"
    if rule:
        out.leave("verdict", trial, rule)
        return
    overturned = decision and decision["position"] not in ("", trial["position"])
    verdict = _verdict(trial, trial["position"], trial["case_seq"], exhibits, shared, trial["raters"], facts)
    verdict["overturns"] = decision["index"] if overturned else None
    _add(classes, ("rules" if panel["rules"] else "models", panel["digest"]), panel, verdict)


def _people(trial, exhibits, shared, decision, facts, classes, out):
    if decision is None:
        return
    if not decision["position"]:
        out.leave("decision", decision, "open")
        return
    verdict = _verdict(decision, decision["position"], trial["case_seq"], exhibits, shared, [decision["reviewer"]], facts)
    _add(classes, ("people", ""), None, verdict)


def _review(review, records, facts, classes, out):
    rule, actor = _stands(review, facts), ""
    originals = [records[digest] for digest in review["names"] if digest in records and records[digest]["id"] == review["original"]]
    if not rule and _own_side(review["reviewer"], facts):
        rule, actor = "own-side", _actor(review["reviewer"])
    if not rule and not originals:
        rule = "original"
    harmless = review["status"] != "rejected" or rule == "own-side" or _about(review, records, facts, out)
    if _stands(review, facts) in ("", "later") and harmless:
        out.heeded.add(review["digest"])
    if rule:
        out.leave("review", review, rule, actor)
    elif review["status"] != "rejected":
        out.approvals += 1
    else:
        verdict = _verdict(review, "unsafe_fail", 0, [min(one["digest"] for one in originals)], 0, [review["reviewer"]], facts)
        _add(classes, ("people", ""), None, verdict)


def _verdict(place, position, case_seq, exhibits, shared, raters, facts):
    said = {"place": place, "at": _when(place, facts["policy"]), "position": position, "case_seq": case_seq, "exhibits": exhibits}
    return said | {"shared": shared, "raters": raters, "overturns": None}


def _add(classes, key, panel, verdict):
    classes.setdefault(key, {"panel": panel, "verdicts": []})["verdicts"].append(verdict)


def _own_side(rater, facts):
    me, policy = facts["identity"], facts["policy"]
    if rater["name"] == me["name"]:
        return True
    if rater["by"] == me["by"] == "cas" and rater["ca"] == me["ca"] and rater["ca"] not in policy["shared_cas"]:
        return True
    return any(
        _belongs(one, "agent", me["name"], me["ca"]) and _belongs(one, rater["role"], rater["name"], rater["ca"])
        for one in policy["organisations"]
    )


def _belongs(organisation, role, name, ca):
    return {"role": role, "name": name} in organisation["actors"] or bool(ca) and ca in organisation["cas"]


def _actor(rater):
    return rater["role"] + " " + rater["name"]


def _incidents(facts, out):
    made = []
    for key in facts["identity"]["keys"]:
        if key["revoked"]:
            made.append({"key_id": key["key_id"], "from": _time(key["revoked"]), "source": "trust"})
    for act in facts["revocations"]:
        if act["proved"]:
            made.append({"key_id": act["key_id"], "from": _time(act["from"]), "source": "log", "record": act["digest"]})
            out.heeded.add(act["digest"])
        else:
            out.leave("revocation", act, act["rule"] or "unproved")
    return sorted(made, key=lambda one: (one["from"], one["key_id"], one["source"], one.get("record", "")))


def _completeness(facts, heeded):
    logs = {}
    for one in facts["counted"]:
        log = logs.setdefault(one["origin"], _Log())
        log.see(one["of"], one["seq"], one["digest"], one["index"])
    for one in facts["logs"]:
        logs.setdefault(one["origin"], _Log()).entries = one
    made, outcome = [], PROVED if logs else NOT_PROVED
    unproved = {one["digest"] for one in _judging(facts) if not one["origin"]}
    for origin in sorted(logs, key=lambda name: name.encode()):
        log = logs[origin]
        one = {"origin": origin, "size": log.entries["size"] if log.entries else 0}
        one |= {"judgments": log.answer("subject", unproved, heeded), "records": log.answer("actor", set(), set())}
        made.append(one)
        counting = [outcome, one["judgments"]["status"]]
        counting += [REFUTED] if one["records"]["status"] == REFUTED else []
        outcome = max(counting, key=WORSE.__getitem__)
    return made, outcome


class _Log:
    """What is known of the numbers of one log."""

    def __init__(self):
        self.entries, self.forked, self.end = None, False, 0
        self.seen, self.uncounted = {"actor": {}, "subject": {}}, set()

    def see(self, of, seq, digest, index):
        self.end = max(self.end, index + 1)
        if seq == 0:
            self.uncounted.add(of)
            return
        self.forked |= self.seen[of].get(seq, digest) != digest
        self.seen[of][seq] = digest

    def answer(self, of, unproved, heeded):
        entries, seen = self.entries[of] if self.entries else [], self.seen[of]
        total = max([len(entries), *seen])
        missing = list(itertools.islice((seq for seq in range(1, total + 1) if seq not in seen), 10))
        doubted = [seq for seq in sorted(seen) if of == "subject" and seen[seq] not in heeded][:10]
        status, rule = PROVED, ""
        if self.entries and self.entries["wrong"]:
            status, rule = REFUTED, "count"
        elif self.forked or any(seq <= len(entries) and entries[seq - 1] != digest for seq, digest in seen.items()):
            status, rule = REFUTED, "fork"
        elif of == "subject" and missing and all(
            seq in seen or seq <= len(entries) and entries[seq - 1] in unproved for seq in range(1, total + 1)
        ):
            status, rule = NOT_PROVED, "unproved"
        elif of == "subject" and missing:
            status, rule = REFUTED, "dropped" if missing[0] <= len(entries) else "hole"
        elif doubted:
            status, rule, missing = NOT_PROVED, "doubted", doubted
        elif of in self.uncounted or self.entries and self.entries["counts"] > 0:
            status, rule = NOT_PROVED, "uncounted"
        elif not self.entries or self.end > self.entries["size"]:
            status, rule = NOT_PROVED, "tail"
        return {"known": len(seen), "total": total, "status": status} | _unless_empty(missing=missing, rule=rule)


def _class(key, given, records, facts, outcome, numberless):
    place = lambda verdict: verdict["place"]
    verdicts = sorted(given["verdicts"], key=lambda one: (one["at"], place(one)["origin"].encode(), place(one)["index"], place(one)["digest"]))
    shown = not numberless and (key[0] != "rules" or facts["policy"]["rule_juries"])
    tally = _Tally(facts, records, shown, _last(verdicts) if facts["policy"]["after_overturn"] else None)
    for verdict in verdicts:
        tally.take_all(verdict)
    bounds = tally.bounds()
    status = "refuted" if outcome == REFUTED else "not proved" if numberless else "not counted" if not shown else "scored" if bounds else "too few"
    made = {
        "class": key[0],
        "status": status,
        "good": tally.sums["safe_pass"],
        "bad": tally.sums["unsafe_fail"],
        "undecided": tally.sums["needs_review"]["units"],
        "judges": _judges(verdicts),
        "months": _months(tally.units.values()),
        "units": [tally.units[digest] for digest in sorted(tally.units)],
        "moves": tally.moves,
    }
    return made | _unless_empty(panel=given["panel"], bounds=bounds)


def _last(verdicts):
    """The last place in each log of a verdict on each exhibit."""
    placed = [((exhibit, verdict["place"]["origin"]), verdict["place"]["index"]) for verdict in verdicts for exhibit in verdict["exhibits"]]
    return dict(sorted(placed, key=lambda item: item[1]))


def _judges(verdicts):
    count = Counter((rater["role"], rater["name"]) for verdict in verdicts for rater in verdict["raters"])
    ordered = sorted(count, key=lambda who: (who[0].encode(), who[1].encode()))
    return [{"role": role, "name": name, "verdicts": count[role, name]} for role, name in ordered]


def _months(units):
    """Counts of the units by the month of their proved time."""
    names = {"safe_pass": "good", "unsafe_fail": "bad", "needs_review": "undecided"}
    made = {}
    for unit in units:
        if unit["outcome"]:
            month = unit["time"][:7]
            made.setdefault(month, {"month": month, "good": 0, "bad": 0, "undecided": 0})[names[unit["outcome"]]] += 1
    return [made[month] for month in sorted(made)]


class _Tally:
    """Adds up the verdicts of one class."""

    def __init__(self, facts, records, shown, last):
        self.facts, self.records, self.shown, self.last = facts, records, shown, last
        self.units, self.moves = {}, []
        self.sums = {position: {"units": 0, "weight": 0} for position in ("safe_pass", "unsafe_fail", "needs_review")}

    def take_all(self, verdict):
        units = [(exhibit, self.units.get(exhibit) or self._unit(exhibit)) for exhibit in verdict["exhibits"]]
        failed = {exhibit for exhibit, unit in units if unit["outcome"] == "unsafe_fail"}
        first = _spread([unit for exhibit, unit in units if exhibit not in failed and not self._aside(verdict, exhibit)])
        again = _spread([unit for _, unit in units])
        for exhibit, unit in units:
            shared = verdict["shared"]
            if verdict["position"] == "unsafe_fail":
                shared = again if exhibit in failed else first
            self._take(verdict, exhibit, unit, shared)

    def _aside(self, verdict, exhibit):
        if self.last is None or verdict["overturns"] is None:
            return False
        return self.last.get((exhibit, verdict["place"]["origin"]), 0) > verdict["overturns"]

    def _take(self, verdict, exhibit, unit, shared):
        aside = self._aside(verdict, exhibit)
        said = {"record": verdict["place"]["digest"], "at": _time(verdict["at"]), "position": verdict["position"], "stands": False}
        said |= _unless_empty(case_seq=verdict["case_seq"], set_aside=aside)
        before = unit["outcome"]
        among_fewer = before == verdict["position"] == "unsafe_fail" and shared < unit["shared"]
        if not aside and (BADNESS[verdict["position"]] > BADNESS[before] or among_fewer):
            self._count(unit, -1)
            for earlier in unit["verdicts"]:
                earlier["stands"] = False
            said["stands"] = True
            unit["outcome"], unit["shared"] = verdict["position"], shared
            unit["weight"] = ONE >> unit["shared"]
            self._count(unit, 1)
            move = {"at": said["at"], "record": said["record"], "unit": exhibit, "to": unit["outcome"], "weight": unit["weight"]}
            self.moves.append(move | _unless_empty(bounds=self.bounds(), **{"from": before}))
        unit["verdicts"].append(said)

    def _unit(self, exhibit):
        record = self.records[exhibit]
        time = _when(record, self.facts["policy"])
        unit = {"digest": exhibit, "id": record["id"], "time": _time(time), "shared": 0}
        self.units[exhibit] = unit | {"outcome": "", "weight": 0, "verdicts": []}
        return self.units[exhibit]

    def _count(self, unit, times):
        if unit["outcome"]:
            self.sums[unit["outcome"]]["units"] += times
            self.sums[unit["outcome"]]["weight"] += times * unit["weight"]

    def bounds(self):
        good, bad = self.sums["safe_pass"]["weight"], self.sums["unsafe_fail"]["weight"]
        if not self.shown or good + bad < self.facts["policy"]["minimum"] * ONE:
            return None
        return wilson(good, bad)


def _spread(units):
    """s of a verdict that fails these units: together they weigh at least as much as one alone."""
    return max(len(units).bit_length(), 1) - 1


def wilson(good, bad):
    """The bounds of the Wilson score interval with z = 2, in ten-thousandths, rounded down."""
    n = good + bad
    radicand = 400_000_000 * (ONE * good * bad + ONE * ONE * n)
    down = math.isqrt(radicand // n)
    up = down + (down * down * n < radicand)
    centre, whole = 10_000 * (good + 2 * ONE), n + 4 * ONE
    return {"lower": (centre - up) // whole, "upper": (centre + down) // whole}


def _coverage(classes, records, logs):
    own = {digest for digest, record in records.items() if not record.get("recorder")}
    judged = len({unit["digest"] for one in classes for unit in one["units"]} & own)
    known, total = len(own), sum(log["records"]["total"] for log in logs)
    if not logs or any(log["records"]["status"] != PROVED for log in logs) or total < known:
        total = 0
    of = total or known
    made = {"judged": judged, "known": known, "per_ten_thousand": judged * 10_000 // of if of else 0}
    return made | _unless_empty(total=total)


def _identity(me):
    keys = [
        {"key_id": key["key_id"]} | _unless_empty(**{"from": _time(key["from"])}, to=_time(key["to"]), revoked=_time(key["revoked"]))
        for key in me["keys"]
    ]
    keys.sort(key=lambda key: (key.get("from", ""), key["key_id"]))
    return {"name": me["name"], "by": me["by"], "keys": keys} | _unless_empty(ca=me["ca"])


def _unless_empty(**members):
    return {name: value for name, value in members.items() if value}


def _time(seconds):
    if seconds == 0:
        return ""
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)
    return moment.isoformat() + "Z"


def main():
    lines, names = sys.argv[1] == "--lines", sys.argv[1:]
    for name in names[1:] if lines else names:
        with open(name, "rb") as file:
            docs = file.read().splitlines() if lines else [file.read()]
        for doc in docs:
            sys.stdout.buffer.write(_form(view(json.loads(doc))) + b"\n")


if __name__ == "__main__":
    main()
