"""The trial: which act must come next and what it must be. Sections "Trials" and "The trial" of docs/format.md.

A trial is gone through from its beginning. For each act the course says what it must be, from the acts before it.
"""

import re

import bodies
import configuration
import judgment
import report
from canonical import form
from shapes import digest_of_value, is_text

RULES, REQUEST = "jurat/trial/v3", "jurat/request/v1"
_GUARANTEE = dict.fromkeys(("sequence", "previous", "position", "completion"), "completeness")
_GUARANTEE |= dict.fromkeys(("simultaneity", "request"), "simultaneity")
_GUARANTEE |= dict.fromkeys(("settings", "answer", "levels", "consensus", "verdict"), "verdict")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_ANSWERS = {"initial": "evaluation", "repetition": "evaluation", "discussion": "statement", "judging": "judge_opinion"}
_CLERKS = ("phase_opening", "absence", "consensus_check", "final_judgment", "trial_closing")


class Broken(Exception):
    """An act is not what it must be: the rule, and why."""


def must(holds, rule, reason):
    if not holds:
        raise Broken(rule, reason)


def check(records, findings):
    """Judges the trial in a bundle."""
    acts = [record for record in records if record.is_trial_act]
    if _check_bodies(acts, findings):
        _check_unity(acts, findings)
        _check_others(records, acts[0], findings)
        if acts[0].action == "submission":
            _check_course(acts, findings)
        else:
            _doubt_the_rest("submission", findings)
    if findings.against("content", "authentication"):
        _doubt_the_rest("signatures", findings)


def _doubt_the_rest(rule, findings):
    """What nothing was found against is not proved."""
    findings.doubt([guarantee for guarantee in report.TRIAL if not findings.against(guarantee)], rule)


def _check_bodies(acts, findings):
    """Step 1: whether every body can be read."""
    unread = bodies.unreadable(acts)
    for act in unread:
        findings.refute("completeness", "body", act)
    if unread:
        _doubt_the_rest("body", findings)
    return not unread


def _check_unity(acts, findings):
    """Steps 2 and 3: one submission first, one chain, one case, one clerk, and the case is the submission's."""
    first, clerk = acts[0], next((act.actor for act in acts if act.action in _CLERKS), None)
    if first.action != "submission":
        findings.refute("completeness", "submission", first)
    for act in acts:
        if (act.get("chain_id"), act.get("case")) != (first.get("chain_id"), first.get("case")):
            findings.refute("completeness", "one-trial", act)
        if act.action in _CLERKS and act.actor != clerk:
            findings.refute("completeness", "one-clerk", act)
    for act in acts:
        if act.action == "submission" and act.get("case") != digest_of_value(act.payload["response"]):
            findings.refute("completeness", "case", act)


def _check_others(records, first, findings):
    """Step 4: records that do not belong here, and gaps in the counts of the log."""
    chain, case = first.get("chain_id"), first.get("case")
    for place, record in enumerate(records):
        early = place < records.index(first)
        other = record.get("chain_id") != chain or record.get("case", case) != case
        if not record.is_trial_act and (early or other):
            findings.refute("completeness", "foreign", record)
    counted = [record for record in records if record.log and record.get("chain_id") == chain]
    for number, record in enumerate(counted, 1):
        if record.log["chain_seq"] != number:
            findings.refute("completeness", "gap", record)
            return
    for record in records:
        if not record.log and record.get("chain_id") == chain:
            findings.doubt("completeness", "inclusion", record)
            return


def _check_course(acts, findings):
    course = Course(acts[0])
    for act in acts:
        try:
            course.take(act)
        except Broken as broken:
            rule, reason = broken.args
            findings.refute(_GUARANTEE[rule], rule, act, reason)
            _doubt_the_rest(rule, findings)
            return
    if not course.closed:
        _doubt_the_rest("closing", findings)
    else:
        check_quotations(acts, findings)


class Session:
    """An opening, and what has come since."""

    def __init__(self, opening, seats, saw):
        body = opening.payload["response"]
        self.opening, self.phase, self.round = opening, body["phase"], int(body["roundNumber"])
        self.seats, self.saw = {seat["jurorId"]: seat for seat in seats}, saw
        self.requests = {item["jurorId"]: item["requestDigest"] for item in body["requests"]}
        self.answers = {}

    def is_named_by(self, body):
        return (body["phase"], body["roundNumber"]) == (self.phase, self.round)

    def waiting(self):
        return [juror for juror in self.requests if juror not in self.answers]

    def by_seat(self):
        return [self.answers[juror] for juror in self.requests]


class Course:
    """A trial as far as it has come."""

    def __init__(self, submission):
        self._submission, self._settings, self._positions = submission, None, {}
        self._sessions, self._standing, self._abstains = [], {}, set()
        self._before = None
        self._last_check = self._judgment = None
        self._degraded = self._ceiling = self.closed = False

    def take(self, act):
        """Takes the next act. Raises Broken if it is not what it must be."""
        must(not self.closed, "sequence", "an act after the closing")
        must(act.digest not in self._positions, "sequence", "a record that comes twice")
        if act is self._submission:
            must(act.get("chain_position") == 1, "position", "another position than 1")
        elif self._judgment is not None:
            self._take_closing(act)
        elif not self._sessions or self._last_check is not None and self._last_check[1] is self._sessions[-1]:
            self._take_opening(act)
        elif self._sessions[-1].waiting():
            self._take_answer(act)
        else:
            self._take_outcome(act)
        self._positions[act.digest] = act.get("chain_position")

    def _check_links(self, act, previous, saw):
        """Rules previous, simultaneity and position, in this order."""
        must(act.get("previous_record") == previous.digest, "previous", "another record before")
        seen = [other.digest for other in saw]
        must(act.get("saw", []) == seen, "simultaneity", "it saw something else")
        highest = max(self._positions[digest] for digest in [previous.digest, *seen])
        must(act.get("chain_position") == highest + 1, "position", "another position")

    def _take_opening(self, act):
        must(act.action == "phase_opening", "sequence", "no opening")
        body = act.payload["response"]
        phase, round_number = self._next_session()
        must((body["phase"], body["roundNumber"]) == (phase, round_number), "sequence", "another phase or round")
        if self._settings is None:
            must(bodies.settings_can_be(body["settings"]), "settings", "settings that cannot be")
            self._settings = body["settings"]
        previous, saw = (self._submission, [self._submission]) if phase == "initial" else (self._last_check[0], [])
        self._check_links(act, previous, saw)
        requests = [{"jurorId": seat["jurorId"], "requestDigest": self._request(seat, phase, round_number)} for seat in self._asked(phase)]
        must(form(body["requests"]) == form(requests), "request", "other requests")
        must(body["rules"] == RULES, "settings", "unknown rules")
        must(form(body["settings"]) == form(self._settings), "settings", "other settings than before")
        self._sessions.append(Session(act, self._asked(phase), self._seen_by_answers(phase)))
        if phase == "discussion" and self._before is None:
            self._before = self._votes()

    def _votes(self):
        jurors = [seat["jurorId"] for seat in self._settings["seats"]]
        return judgment.Votes({juror: self._standing[juror] for juror in jurors if juror in self._standing}, set(self._abstains))

    def _next_session(self):
        if self._last_check is None:
            return "initial", 0
        body = self._last_check[0].payload["response"]
        if body["phase"] == "initial" and self._disputed():
            return "repetition", 0
        reached = body["consensusCheck"]["consensusReached"]
        again = self._settings["collaborative"] and not reached and not self._ceiling
        again = again and body["roundNumber"] < self._settings["maxRounds"]
        counted = (self._before or self._votes()).standing.values()  # too few before the discussion make it pointless
        again = again and not (judgment.counts_before(self._settings) and sum(map(judgment.is_valid_vote, counted)) < 2)
        again = again and self._possible_votes() >= 2
        return ("discussion", body["roundNumber"] + 1) if again else ("judging", 0)

    def _possible_votes(self):
        """How many seats have a valid vote, or did more when they were last asked than fail."""
        last = {}
        for session in self._sessions:
            last |= session.answers
        failed = {juror for juror, act in last.items() if act.action == "absence" and act.payload["response"]["reason"] == "failed"}
        valid = {juror for juror, evaluation in self._standing.items() if judgment.is_valid_vote(evaluation)}
        return len({seat["jurorId"] for seat in self._settings["seats"]} - (failed - valid))

    def _disputed(self):
        """The seats that are asked again: models with a valid vote in phase 1 that is not the majority's."""
        first = self._sessions[0].answers
        votes = {juror: act.payload["response"] for juror, act in first.items() if act.action == "evaluation"}
        valid = sum(map(judgment.is_valid_vote, votes.values()))
        if "repeat" not in self._settings or self._ceiling or valid < 2:
            return []
        check = judgment.consensus("initial", 0, self._settings, list(votes.values()))["consensusCheck"]
        models = {seat["jurorId"]: seat for seat in self._settings["seats"] if seat["provider"] != "offline"}
        valid = [juror for juror in models if judgment.is_valid_vote(votes.get(juror))]
        return [models[juror] for juror in valid if votes[juror]["position"] != check["majorityPosition"]]

    def _asked(self, phase):
        if phase == "initial" and "judgeReads" in self._settings:
            return [*self._settings["seats"], self._settings["judge"]]
        if phase == "repetition":
            return self._disputed()
        if phase != "judging":
            return self._settings["seats"]
        valid = sum(map(judgment.is_valid_vote, self._standing.values()))
        asked = "judge" in self._settings and valid >= 2 and not self._ceiling
        return [self._settings["judge"]] if asked else []

    def _request(self, seat, phase, round_number):
        extra = {name: self._settings[name] for name in ("shortening",) if name in self._settings}
        extra |= {"tables": True} if self._wants_tables(seat, phase) else {}
        saw = [record.digest for record in self._seen_by_answers(phase)]
        asked = {"evidence": self._submission.get("case"), "format": REQUEST, "phase": phase, "roundNumber": round_number, "rubric": self._settings["rubric"]}
        return digest_of_value(extra | asked | {"saw": saw, "seat": seat})

    def _wants_tables(self, seat, phase):
        """Whether this seat must give work in a session that opens now, or is open."""
        if "tables" not in self._settings or seat["provider"] == "offline" or phase == "discussion":
            return False
        return phase != "judging" or "judgeReads" not in self._settings

    def _reading(self):
        """The judge's opinion of phase 1, or None."""
        answers = self._sessions[0].answers.values() if self._sessions else ()
        return next((answer for answer in answers if answer.action == "judge_opinion"), None)

    def _seen_by_answers(self, phase):
        """What whoever answers in a session that opens now is shown."""
        if phase in ("initial", "repetition"):
            return [self._submission]
        own = [self._reading()] if phase == "judging" and self._reading() else []
        earlier = [answer for session in self._sessions for answer in session.by_seat()]
        said = [answer for answer in earlier if answer.action not in ("absence", "judge_opinion")]
        return [self._submission, *own, *said]

    def _take_answer(self, act):
        session = self._sessions[-1]
        body = act.payload["response"]
        juror = body["jurorId"] if act.action == "absence" else act.actor
        must(juror in session.waiting(), "sequence", "nobody waits for an answer from there")
        seat = session.seats[juror]
        expected = "judge_opinion" if seat is self._settings.get("judge") else _ANSWERS[session.phase]
        must(act.action in ("absence", expected), "sequence", "no answer")
        must(self._is_valid(act, seat), "answer", "an answer that is not valid")
        if act.action != "absence":
            self._check_demands(act, seat, session)
        self._check_links(act, session.opening, [] if act.action == "absence" else session.saw)
        if act.action != "absence":
            must(act.get("request_digest") == session.requests[juror], "request", "another request")
        take = {"absence": self._absence, "evaluation": self._evaluation, "statement": self._statement}.get(act.action)
        updated = take and take(body, seat, session)
        session.answers[juror] = act
        if session.phase == "repetition" and updated is not None and updated["position"] != self._standing[juror]["position"]:
            del self._standing[juror]
            self._abstains.add(juror)
        elif updated is not None:
            self._standing[juror] = updated
            self._abstains.discard(juror)
        self._ceiling |= act.action == "absence" and body["reason"] == "ceiling"
        self._degraded |= act.action == "absence" or bool(updated and updated["fallback"]) or "ended" in seat or self._of_another(act, seat)

    def _of_another(self, act, seat):
        """Whether another model answered than that of the seat."""
        model = act.payload.get("model", "")
        return model not in ("", "unreported") and seat.get("model", "") != "" and not configuration.is_of_seat(model, seat["model"])

    def _check_demands(self, act, seat, session):
        """What an opinion must have beside what every opinion has: levels that its scores follow from, and work."""
        body = act.payload["response"]
        opinion = body["updatedEvaluation"] if act.action == "statement" else body
        if opinion is None or opinion.get("fallback"):
            return
        if "levels" in opinion:
            must(bodies.levels_follow(opinion, self._settings["rubric"]), "levels", "scores that do not follow from levels")
        elif seat["provider"] != "offline":
            must(not any("levels" in axis for axis in self._settings["rubric"]), "levels", "no levels")
        must("work" in opinion or not self._wants_tables(seat, session.phase), "answer", "no tables")

    def _is_valid(self, act, seat):
        """Whether an answer can be that of this seat now, whatever it says of its place in the trial."""
        body, rubric, juror = act.payload["response"], self._settings["rubric"], seat["jurorId"]
        standing = self._standing.get(juror)
        kept = seat is self._settings.get("judge") or standing is not None or juror in self._abstains
        if act.action == "absence":
            return body["reason"] in bodies.REASONS and (body["reason"] != "blocked" or kept)
        evaluation = body["updatedEvaluation"] if act.action == "statement" else body
        if evaluation and evaluation.get("fallback"):
            return not kept
        if act.action == "statement":
            return self._can_be_said(body, standing)
        return bodies.opinion_is_valid(body, rubric)

    def _can_be_said(self, body, standing):
        said, updated = body["statement"] + body["reasoning"], body["updatedEvaluation"]
        if not (is_text(body["statement"]) and is_text(body["reasoning"]) and body["position"] in bodies.POSITIONS):
            return False
        if updated is None:
            own = standing is not None and not standing["fallback"] and standing["position"] == body["position"]
            return own and len(said.encode()) <= bodies.MAX_STRINGS
        return bodies.opinion_is_valid(updated, self._settings["rubric"], said) and updated["position"] == body["position"]

    def _absence(self, body, seat, session):
        must(session.is_named_by(body), "answer", "another phase or round")
        must(len(body["detail"].encode()) <= 500 and not _CONTROL.search(body["detail"]), "answer", "a detail that cannot be")

    def _evaluation(self, body, seat, session):
        """An evaluation, be it a whole answer or the updated one of a statement."""
        must(session.is_named_by(body) and body["jurorId"] == seat["jurorId"], "answer", "another phase, round or juror")
        if body["fallback"]:
            wanted = judgment.stand_in(seat, session.phase, session.round, self._settings["rubric"])
            must(form(body) == form(wanted), "answer", "no stand-in")
            return body
        roles = all(body.get(name) == seat.get(name) for name in ("roleName", "roleFocus"))
        must(roles, "answer", "another role than the seat's")
        return body

    def _statement(self, body, seat, session):
        juror, updated = seat["jurorId"], body["updatedEvaluation"]
        standing = self._standing.get(juror)
        order = [item["jurorId"] for item in self._settings["seats"]].index(juror)
        says = (body["jurorId"], body["roundNumber"], body["statementOrder"])
        must(says == (juror, session.round, order), "answer", "another juror, round or place")
        moved = standing is not None and standing["position"] != body["position"]
        must(body["positionChanged"] == moved, "answer", "positionChanged is not so")
        if updated is None:
            return None
        self._evaluation(updated, seat, session)
        if updated["fallback"]:
            must(updated["position"] == body["position"], "answer", "two positions")
            texts = (judgment.STAND_IN_STATEMENT, judgment.STAND_IN_RATIONALE)
            must((body["statement"], body["reasoning"]) == texts, "answer", "not the texts of a stand-in")
        elif standing is not None:
            names = [name for name in bodies.OPINION if name != "work" or "work" in updated]
            same = all(form(updated.get(name)) == form(standing.get(name)) for name in names)
            must(not same, "answer", "an updated evaluation that changes nothing")
        return updated

    def _take_outcome(self, act):
        session = self._sessions[-1]
        judging = session.phase == "judging"
        must(act.action == ("final_judgment" if judging else "consensus_check"), "sequence", "no outcome")
        must(judging or session.is_named_by(act.payload["response"]), "sequence", "another phase or round")
        self._check_links(act, session.opening, session.by_seat())
        votes, body = self._votes(), act.payload["response"]
        if judging:
            opinion = next((answer for answer in session.by_seat() if answer.action == "judge_opinion"), None)
            wanted = judgment.judgment(self._settings, votes, self._before, opinion, self._degraded, self._ceiling)
            must(form(body) == form(wanted), "verdict", "another judgment follows")
            self._judgment = act
        else:
            wanted = judgment.consensus(session.phase, session.round, self._settings, list(votes.standing.values()))
            must(form(body) == form(wanted), "consensus", "another consensus follows")
            self._last_check = (act, session)

    def _take_closing(self, act):
        must(act.action == "trial_closing", "sequence", "no closing")
        self._check_links(act, self._judgment, [])
        must(act.payload["response"]["acts"] == len(self._positions) + 1, "completion", "another number of acts")
        self.closed = True


BOUND = 1 << 32


def check_quotations(acts, findings):
    """Refutes the verdict by the first quotation that is shown as standing in a message, and does not."""
    shown, evidence = acts[0].disclosed("response")
    shown = shown and not any(pointer.startswith("/response/") for pointer in acts[0].payload.get("sealed_apart", []))
    messages = _messages(evidence) if shown else None
    if messages is None:
        return
    known, searched = {}, 0
    for act in acts:
        for message, quote in _quotations(act):
            if (message, quote) not in known:
                canonical, texts = messages[message - 1] if message <= len(messages) else ("", [])
                searched += len(canonical.encode())
                if searched > BOUND:
                    findings.doubt("verdict", "quotation")
                    return
                known[message, quote] = all(any(line in text for text in [canonical, *texts]) for line in quote.split("\n"))
            if not known[message, quote]:
                findings.refute("verdict", "quotation", act)
                return


def _quotations(act):
    """The quotations of an answer that are not marked: those of its findings, then those of its tables."""
    body = act.payload["response"]
    opinion = body["updatedEvaluation"] if act.action == "statement" else body
    if act.action not in ("evaluation", "statement", "judge_opinion") or opinion is None:
        return []
    passages = opinion["findings"] + (bodies.passages(opinion["work"]) if "work" in opinion else [])
    return [(int(item["message"]), item["quote"]) for item in passages if "unfounded" not in item]


def _messages(evidence):
    """The messages as (canonical form, texts); None if the conversation is no array of chat messages."""
    conversation = evidence.get("conversation") if isinstance(evidence, dict) else None
    if not isinstance(conversation, list):
        return None
    if not all(isinstance(item, dict) and ("parts" not in item or "content" in item) for item in conversation):
        return None
    return [(form(item).decode(), list(_texts(item))) for item in conversation]


def _texts(value):
    """Every string in a value, and the value of each member type in brackets."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _texts(item)
            if name == "type" and isinstance(item, str):
                yield f"[{item}]"


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
    doubted = any(item["guarantee"] == "human_review" and item.get("record") in (None, record.id) for item in findings.details)
    position = {"approved": stood, "rejected": None}.get(status, _given(record)) if not doubted else None
    rulings.setdefault(record.id, (record.digest, position))
    decision = {"record": record.id, "reviewer": record.get("reviewer_id"), "at": record.get("timestamp"), "status": status}
    decision |= ({"position": position} if position else {}) | ({"doubted": True} if doubted else {})
    found |= {"position": position or "needs_review", "by": "person", "open": position is None}
    found |= {"decision": decision, "decisions": found["decisions"] + 1}


def _given(record):
    shown, value = record.disclosed("modified_response")
    position = value.get("position") if shown and isinstance(value, dict) else None
    return position if position in _DECIDABLE else None
