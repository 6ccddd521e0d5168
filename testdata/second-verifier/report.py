"""What was found, and the report of it: section "Report" and the table of guarantees in docs/format.md."""

from shapes import time_text

PROVED, NOT_PROVED, REFUTED = "proved", "not proved", "refuted"
_WEIGHT = {PROVED: 0, NOT_PROVED: 1, REFUTED: 2}
GUARANTEES = (
    "content", "authentication", "non_repudiation", "configuration", "vantage", "time", "qualified", "property", "before", "order",
    "chain", "human_review", "given_on", "completeness", "simultaneity", "verdict", "envelope",
)
TRIAL = ("completeness", "simultaneity", "verdict")
_UNCOUNTED = ("non_repudiation", "configuration", "vantage", "qualified", "property")
DOES_NOT_PROVE = ["that what was said is correct", "that anybody is responsible in law", "that it is safe", "that it should be carried out"]


def worst(statuses):
    return max(statuses, key=_WEIGHT.__getitem__, default=PROVED)


class Findings:
    """Everything that was found against the guarantees that are asked, in the order in which it was found."""

    def __init__(self, kind, asked):
        self.kind, self.asked = kind, set(asked)
        self.details, self.times, self.records, self.log = [], [], 0, None
        self.own_word = set()  # what only the operator's clock proves
        self.parties, self.witnessed, self.compared = set(), False, False

    def ask(self, *guarantees):
        self.asked |= set(guarantees)

    def add(self, guarantees, status, rule, record=None, reason=""):
        """Notes what was found against a guarantee, or each of several."""
        of = {} if record is None else {"record": record.id}
        for guarantee in (guarantees,) if isinstance(guarantees, str) else guarantees:
            self.details.append({"guarantee": guarantee, "status": status, "rule": rule, **of, "reason": reason})

    def refute(self, guarantees, rule, record=None, reason=""):
        self.add(guarantees, REFUTED, rule, record, reason)

    def doubt(self, guarantees, rule, record=None, reason=""):
        self.add(guarantees, NOT_PROVED, rule, record, reason)

    def against(self, *guarantees):
        """Whether anything was found against any of them."""
        return any(finding["guarantee"] in guarantees for finding in self.details)

    def of(self, guarantee, record):
        """The worst that was found of one record."""
        found = [item for item in self.details if item["guarantee"] == guarantee and item.get("record") == record.id]
        return worst(item["status"] for item in found)

    def prove_time(self, record, earliest, independent, qualified):
        """Notes when a record existed."""
        proved = {"record": record.id} | _time_of(earliest)
        if independent and earliest.clock != "independent":
            proved["independent"] = _time_of(independent)
        self.times.append(proved | ({"qualified": qualified} if qualified else {}))

    def answer(self, guarantee):
        """The worst finding, and of equal ones the first."""
        found = [finding for finding in self.details if finding["guarantee"] == guarantee]
        if not found:
            rule = {"rule": "operator-clock"} if guarantee in self.own_word else {}
            return {"guarantee": guarantee, "status": PROVED} | rule | {"reason": "nothing was found against it"}
        return next(item for item in found if item["status"] == worst(each["status"] for each in found))

    def outcome(self, answers, need=None, expressly=()):
        if any(answer["status"] == REFUTED for answer in answers):
            return REFUTED
        if any(guarantee not in self.asked for guarantee in (*(need.require if need else ()), *expressly)):
            return NOT_PROVED
        counting = {guarantee for guarantee in self.asked if counts_by_default(self.kind, guarantee)}
        if need:
            counting = {guarantee for guarantee in self.asked if need.counts(self.kind, guarantee, guarantee in counting)}
        return worst(answer["status"] for answer in answers if answer["guarantee"] in counting | set(expressly))

    def report(self, trust, need=None, expressly=(), rate=None):
        """The report. rate says what the proof rests on; without it nothing is said of that, as of several files together."""
        answers = [self.answer(guarantee) for guarantee in GUARANTEES if guarantee in self.asked]
        outcome = self.outcome(answers, need, expressly)
        report = _report(self.kind, self.records, trust, outcome, answers, self.details, self.times)
        if need and (stated := need.stated()):
            report["demanded"] = stated
        if rate:
            report["basis"] = rate(self, answers)
            if unmet := need.unmet(self.kind, report["basis"]) if need else []:
                report["basis"]["unmet"] = unmet
                report["outcome"] = worst([report["outcome"], NOT_PROVED])
        return report | ({"log": {"origin": self.log.origin, "size": self.log.size}} if self.log else {})


def counts_by_default(kind, guarantee):
    """Whether a guarantee counts for the outcome of such a file, unless the reader demands otherwise."""
    return guarantee not in _UNCOUNTED and (kind != "record" or guarantee != "human_review")


def is_open_alone(report):
    """Whether a report is not proved for nothing but what its records say of records that are not in its file."""
    if report.get("basis", {}).get("unmet"):
        return False
    required = set(report.get("demanded", {}).get("guarantees", ()))
    answers = {item["guarantee"]: item["status"] for item in report["guarantees"]}
    counting = required | (set(answers) - set(_UNCOUNTED))
    still_open = {guarantee for guarantee in counting if answers.get(guarantee) != PROVED}
    return report["outcome"] == NOT_PROVED and still_open <= {"chain", "human_review", "given_on"}


def _time_of(proof):
    return {"time": time_text(proof.time), "authority": proof.authority.name, "clock": proof.clock}


def damaged(kind, trust, reason):
    """The report of a file that does not open."""
    asked = ("content", "authentication", "time", "order") + (TRIAL if kind == "trial" else ())
    answers = [{"guarantee": guarantee, "status": NOT_PROVED, "reason": "the file does not open"} for guarantee in asked[1:]]
    answers.insert(0, {"guarantee": "content", "status": REFUTED, "rule": "form", "reason": reason})
    return _report(kind, 0, trust, REFUTED, answers, [], [])


def _report(kind, records, trust, outcome, answers, details, times):
    report = {"format": "jurat/report/v1", "kind": kind, "records": records}
    if trust.fingerprint:
        report["trust"] = trust.fingerprint
    return report | {"outcome": outcome, "guarantees": answers, "details": details, "times": times, "does_not_prove": DOES_NOT_PROVE}
