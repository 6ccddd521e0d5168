"""The steps of verification that every file goes through: section "Verification" of docs/format.md."""

from fractions import Fraction

import assurance
import bodies
import chains
import configuration
import files
import keys
import knownlog
import log
import payload as payloads
import properties
import recorded
import report
import reviews
import revocation
import stamps
import statements
import tags
import together
import trials
import vouching
from canonical import Refused, require
from shapes import moment

_ANY_MORE = Fraction(1, 10**9)  # of a moment that is the last, as records count time
_ALWAYS = ("content", "authentication", "non_repudiation", "time", "order")
_SIGNED = ("content", "authentication", "non_repudiation")
_SKEW = 5 * 60


class Times:
    """By when a record existed; None where nothing proves it. Under a demand only an independent clock answers questions."""

    def __init__(self, earliest=None, independent=None, demanded=False):
        self.earliest, self.independent = earliest, independent
        self.by = independent if demanded else earliest

    def before(self, moment, findings=None, guarantee=None):
        """Whether it existed before a moment. Notes an answer that only the operator's clock gives."""
        existed = self.by is not None and self.by < moment
        if existed and guarantee and (self.independent is None or self.independent >= moment):
            findings.own_word.add(guarantee)
        return existed

    def within(self, last, findings=None, guarantee=None):
        """Likewise, for the last moment at which something was valid."""
        return self.before(last + _ANY_MORE, findings, guarantee)


GIVEN = ("checkpoint", "consistency", "entries")


class Reader:
    """What a reader brings beside the trust file; files as their bytes. Raises Refused for a file that is none."""

    def __init__(self, before=None, at=None, lists=(), grace=None, need=None, checkpoint=None, consistency=None, entries=None):
        self.before, self.at, self.lists, self.need = before, at, list(lists), need
        self.grace = revocation.GRACE if grace is None else grace
        self.checkpoint = knownlog.read_checkpoint(checkpoint) if checkpoint is not None else None
        self.consistency = knownlog.Consistency(consistency) if consistency is not None else None
        self.entries, self.together = entries, together.Together()

    def expressly(self, kind):
        """What the reader asks of such a file: it counts under every level."""
        knows = self.checkpoint is not None or self.entries is not None
        return (("before",) if self.before is not None else ()) + ((knownlog.guarantee_of(kind),) if knows else ())


def verify(data, trust, reader):
    """The report on a file. Raises files.NoFile for what is none of this format."""
    note = log.mended_note(data)
    if log.is_checkpoint(note):
        return _mended(note != data, _verify_checkpoint(note.decode("utf-8"), trust, reader))
    if data.startswith(b"\xd2\x84"):
        return _verify_statement(data, trust, reader)
    try:
        opened = files.open_file(data)
    except files.Damaged as err:
        return report.damaged(err.kind, trust, str(err))
    return _verify_opened(opened, trust, reader)


def _verify_statement(data, trust, reader):
    """The report on a statement of SCITT, which has its record in it."""
    try:
        statement = statements.Statement(data)
    except Refused as err:
        if statements.TYPE.encode() not in data:
            raise files.NoFile(str(err)) from err
        return statements.damaged(trust, str(err), report.NOT_PROVED)
    if not statement.is_own:
        raise files.NoFile("a statement that holds no record")
    try:
        opened = statement.open_record()
    except statements.NoRecord as err:
        return statements.without_record(statement, trust, str(err))
    except Refused as err:
        return statements.damaged(trust, str(err))
    return _verify_opened(opened, trust, reader, statement)


def _verify_opened(opened, trust, reader, statement=None):
    """The report on records; they may have come in a statement."""
    stand = all(authority.revocation == "none" for authority in trust.authorities)
    require(stand, "authorities whose certificates may be revoked", keys.Unsupported)
    findings = report.Findings(opened.kind, _ALWAYS)
    if statement is not None:
        findings.ask("envelope")
    if reader.before is not None:
        findings.ask("before")
    needs_qualified = reader.need and (reader.need.level == assurance.LEVELS[3] or "qualified" in reader.need.require)
    if needs_qualified or any(authority.services for authority in trust.authorities):
        findings.ask("qualified")
    if not opened.records:
        findings.doubt(sorted(findings.asked), "empty")
    findings.records = len(opened.records)
    clock = stamps.Clock(trust, reader.at)
    anchors = _anchors(opened, trust, clock, findings)
    revoked = revocation.Lists(reader, clock.effort)
    for record in opened.records:
        with clock.effort.part():
            times = _check_time(record, anchors, clock, findings, reader.need is not None and reader.need.of_clock())
            _check_record(record, trust, reader.before, times, vouching.Judge(trust, clock.effort, revoked), findings)
        properties.check_carried(record, findings)
    _check_order(opened, trust, reader.at, findings, anchors)
    if statement is not None:
        statements.check_own(statement, opened.records[0], trust, findings)
    gaps = recorded.check(opened.records, findings)
    knownlog.check(opened, findings.log, reader, trust, findings)
    if opened.kind == "trial":
        findings.ask(*report.TRIAL)
    if "completeness" in findings.asked:
        for record in gaps:
            findings.doubt("completeness", "gap", record)
    if opened.is_bundle and _is_exceeded(opened.records):
        _doubt_volume(opened.records, findings)
    else:
        _check_mutual(opened, findings)
    reader.together.take(opened, findings)
    came_to = trials.outcome(opened.records, findings)
    found = _report(findings, trust, reader) | ({"trial_outcome": came_to} if came_to else {})
    return _mended(opened.mended, found)


def _check_mutual(opened, findings):
    """What the records say of each other."""
    by_digest = {record.digest: record for record in opened.records}
    for record in opened.records if opened.is_bundle else ():
        for digest in dict.fromkeys([record.get("previous_record"), *record.get("saw", [])]):
            if other := by_digest.get(digest):
                _check_pair(record, other, findings)
    tags.check(opened, findings)
    if opened.kind == "trial" and opened.is_bundle:
        trials.check(opened.records, findings)
    elif opened.kind == "trial":  # a record file with one act of a trial shows nothing of the trial
        findings.doubt(report.TRIAL, "one-act")
    configuration.check(opened.records, bodies.unreadable(opened.records), findings)
    chains.check(opened, findings)
    reviews.check(opened, findings)


def _report(findings, trust, reader):
    return findings.report(trust, reader.need, reader.expressly(findings.kind), assurance.rate)


def _mended(mended, found):
    """The report, which says so if the file was not in its one form."""
    return found | ({"mended": True} if mended else {})


def _verify_checkpoint(note, trust, reader):
    """The report on a checkpoint by itself."""
    opened = files.File(True, [], note, [])
    opened.kind = "checkpoint"
    findings = report.Findings(opened.kind, ("order",))
    _check_order(opened, trust, reader.at, findings)
    knownlog.check(opened, findings.log, reader, trust, findings)
    return _report(findings, trust, reader)


def _check_record(record, trust, before, times, judge, findings):
    if before is not None and not times.before(before, findings, "before"):
        findings.doubt("before", "time", record)
    for signer, signature in zip(record.payload["signers"], record.signatures):
        known = len(findings.details)
        party = _check_signature(record, signer, signature, trust, times, judge, findings)
        if party and not any(item["guarantee"] in ("content", "authentication") for item in findings.details[known:]):
            findings.parties.add(party)
    for disclosure in record.disclosures:
        if not (opens := payloads.opens(record.payload, disclosure)) or not payloads.opens_second(record.payload, disclosure):
            findings.refute("content", "provable" if opens else "disclosure", record, disclosure["pointer"])
            break


def _check_time(record, anchors, clock, findings, demanded):
    """The earliest time that is proved, and the earliest by an independent clock."""
    proofs = _proofs(record, anchors, clock, findings)
    of_lists, rule = stamps.of_proofs(proofs)
    if rule and "qualified" in findings.asked:
        findings.doubt("qualified", rule, record)
    if not proofs:
        return Times()
    earliest = min(proofs, key=lambda proof: proof.time)
    if "timestamp" in record.payload and moment(record.payload["timestamp"]) > earliest.time + _SKEW:
        findings.doubt("time", "skew", record)
    independents = [proof for proof in proofs if proof.clock == "independent"]
    independent = min(independents, key=lambda proof: proof.time, default=None)
    findings.prove_time(record, earliest, independent, of_lists)
    return Times(earliest.time, independent and independent.time, demanded)


def _proofs(record, anchors, clock, findings):
    """All proofs of a record's time."""
    if anchors.forged:
        return []
    try:
        proofs, reason = stamps.proofs_of(record, anchors, clock)
    except Refused as err:
        findings.refute("time", "token", record, str(err))
        return []
    if not proofs:
        findings.doubt("time", reason, record)
    return proofs


def _anchors(opened, trust, clock, findings):
    """The stamped checkpoints. If one of their tokens is refuted, no time of any record is proved."""
    try:
        checkpoint = opened.checkpoint and log.open_checkpoint(opened.checkpoint, trust.logs)
    except (log.Unsigned, Refused):
        checkpoint = None
    with clock.effort.part():
        anchors = stamps.Anchors(opened, checkpoint, trust, clock)
    for reason in anchors.forged:
        findings.refute("time", "token", reason=reason)
    return anchors


def _check_signature(record, signer, signature, trust, times, judge, findings):
    key = trust.keys.get(signer["key_id"])
    if key is None:
        return _check_certified(record, signer, signature, times, judge, findings)
    if key.algorithm != signer["alg"] or not keys.is_valid(key.algorithm, key.spki, record.message, signature):
        findings.refute(_SIGNED, "signature", record, signer["key_id"])
        return None
    if (key.role, key.name) != (record.role, record.actor):
        findings.refute("authentication", "actor", record)
    elif times.earliest is not None and key.not_before is not None and times.earliest < key.not_before:
        findings.refute("authentication", "validity", record)
    elif key.not_after is not None and not times.within(key.not_after, findings, "authentication"):
        findings.doubt("authentication", "validity", record)
    if key.revoked is not None and (times.independent is None or times.independent >= key.revoked):
        findings.doubt(_SIGNED[1:], "revoked", record)
    _check_second(record, key, times, findings)
    if key.custody != "owner":
        findings.doubt("non_repudiation", "custody", record)
    return key.role, key.custody, "keys"


def _check_certified(record, signer, signature, times, judge, findings):
    """A signature with a key that the trust file does not list, but for which a CA may vouch."""
    given = vouching.Given(record, signer)
    rule, ca = "certificate", None
    if not given.is_refused and not given.signers:
        rule = "unknown-key"
    elif not given.is_refused:
        if given.algorithm != signer["alg"] or not keys.is_valid(given.algorithm, given.spki, record.message, signature):
            findings.refute(_SIGNED, "signature", record, signer["key_id"])
            return None
        rule, ca = judge.answer(record, given, times, findings)
    if rule in ("unknown-key", "certificate", "effort"):
        findings.doubt(_SIGNED, rule, record, signer["key_id"])
        return None
    if rule is not None:
        (findings.refute if rule == "actor" else findings.doubt)(_SIGNED[1:], rule, record, signer["key_id"])
    if ca.custody != "owner":
        findings.doubt("non_repudiation", "custody", record)
    return record.role, ca.custody, "cas"


def _check_second(record, key, times, findings):
    """Keys that sign only together with others: section "Signatures and disclosures"."""
    named = {signer["key_id"] for signer in record.payload["signers"]}
    if set(key.with_keys) <= named:
        return
    if key.with_from is not None and times.before(key.with_from, findings, "authentication"):
        return
    if key.with_from is None or (times.earliest is not None and times.earliest >= key.with_from):
        findings.refute(_SIGNED[1:], "second-signature", record)
    else:
        findings.doubt(_SIGNED[1:], "second-signature", record)


def _check_order(opened, trust, at, findings, anchors=None):
    try:
        require(opened.checkpoint is not None, "the file has no checkpoint", log.Unsigned)
        checkpoint = log.open_checkpoint(opened.checkpoint, trust.logs)
    except log.Unsigned as err:
        findings.doubt("order", "checkpoint", reason=str(err))
        return
    except Refused as err:
        findings.refute("order", "checkpoint", reason=str(err))
        return
    findings.log = checkpoint
    _check_witnesses(opened.checkpoint, trust, at, findings)
    if anchors is not None and anchors.forked:
        findings.refute("order", "fork")
    for record in opened.records:
        if record.log is None:
            findings.doubt("order", "inclusion", record)
        elif not log.is_included(record, checkpoint):
            findings.refute("order", "inclusion", record)


def _check_witnesses(note, trust, at, findings):
    """Whether as many witnesses have cosigned the checkpoint as the reader demands."""
    if trust.quorum == 0:
        return
    try:
        if log.count_witnesses(note, trust.witnesses, None if at is None else at + _SKEW) < trust.quorum:
            findings.doubt("order", "witnesses")
        else:
            findings.witnessed = True
    except Refused as err:
        findings.refute("order", "cosignature", reason=str(err))


def _check_pair(record, other, findings):
    """A record and one that it names."""
    if record.log and other.log and other.log["index"] >= record.log["index"]:
        findings.refute("order", "causality", record)
    if record.is_trial_act and "timestamp" in other.payload:
        if moment(record.payload["timestamp"]) < moment(other.payload["timestamp"]):
            findings.refute("order", "claimed-time", record)


_LINKS_OF_RECORD = 64
_LINKS = 1_048_576
_TEXTS = 134_217_728


def _is_exceeded(records):
    """Whether the records of a bundle name more, or their acts of a trial say more, than is looked at."""
    links = sum(max(0, len(record.get("saw", [])) + (record.get("previous_record") is not None) - _LINKS_OF_RECORD) for record in records)
    return links > _LINKS or sum(len(record.message) for record in records if record.is_trial_act) > _TEXTS


def _doubt_volume(records, findings):
    """Leaves open all that rests on what the records say of each other."""
    if any(map(configuration.is_asked, records)):
        findings.ask("configuration")
    if any(map(chains.is_linked, records)):
        findings.ask("chain")
    if any(record.action in ("human_review", "delivery") for record in records):
        findings.ask("human_review")
    resting = ("configuration", "order", "chain", "human_review", *report.TRIAL)
    findings.doubt([guarantee for guarantee in resting if guarantee in findings.asked], "volume")
