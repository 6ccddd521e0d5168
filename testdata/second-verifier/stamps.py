"""When a record existed: its time stamps, those of its checkpoint, and whose word still counts.

Step 1 of "Each record" and the paragraphs "The tokens" and "Belief ends" in docs/format.md.
"""

import hashlib

import evidencerecord
import log
import tokens

_SKEW = 5 * 60
_MAX_STAMPS = 128  # of a record or a checkpoint; of more, none is looked at
# Of several reasons why no time is proved, the first of these is given.
_REASONS = ("future", "renewal", "group", "authority")


class Proof:
    """A time, and who vouches for it. The clock can be worth less than the authority's own."""

    def __init__(self, time, authority, clock=None):
        self.time, self.authority = time, authority
        self.clock = clock or authority.clock


class Reason(tokens.NotProved):
    """Why a time stamp proves nothing, by its rule."""

    def __init__(self, rule):
        super().__init__(rule)
        self.rule = rule


class Clock:
    """What the reader believes of times: the authorities, and the moment of checking."""

    def __init__(self, trust, at):
        self.authorities, self.at = trust.authorities, at

    def accept(self, data, imprint, algorithm="sha256"):
        """The token and its proof by the first authority that accepts it. Raises Refused or Reason."""
        for authority in self.authorities or [None]:
            try:
                token = tokens.verify(data, imprint, authority, algorithm)
            except tokens.NotProved:
                continue
            return token, Proof(token.proved_time(), authority)
        raise Reason("authority")

    def believes(self, authority):
        """Whether an authority is believed by itself."""
        return authority.not_after is None or (self.at is not None and self.at <= authority.not_after)

    def present(self, proof):
        """The proof, unless its time is yet to come."""
        if self.at is not None and proof.time > self.at + _SKEW:
            raise Reason("future")
        return proof

    def shown(self, proof, by):
        """The proof, if its authority is believed, or one of these later proofs shows that it existed in time."""
        if self.believes(proof.authority):
            return proof
        in_time = [later for later in by if later.time <= proof.authority.not_after]
        if not in_time:
            raise Reason("renewal")
        independent = any(later.clock == "independent" for later in in_time)
        return Proof(proof.time, proof.authority, None if independent else "operator")


class CheckpointStamps:
    """The time stamps of a file's checkpoint. Raises Refused if one is refuted, whoever signed the checkpoint."""

    def __init__(self, opened, checkpoint, clock):
        self._checkpoint, self._proofs, self._reasons = checkpoint, [], []
        if len(opened.checkpoint_timestamps) > _MAX_STAMPS:
            self._reasons.append("authority")
            return
        for _, data in opened.checkpoint_timestamps:
            try:
                _, proof = clock.accept(data, hashlib.sha256(opened.checkpoint.encode()).digest())
                self._proofs.append(clock.shown(clock.present(proof), []))
            except tokens.NotProved as err:
                self._reasons.append(_rule(err))

    def of(self, record):
        """The proofs that they are for a record, and the rules by which they are none."""
        if self._checkpoint is None:
            return [], ["authority"] if self._proofs or self._reasons else []
        if record.log is None or not log.is_included(record, self._checkpoint):
            return [], []
        return self._proofs, self._reasons


def proofs_of(record, of_checkpoint, clock):
    """All proofs of a record's time, and the rule by which there is none. Raises Refused if a time stamp is refuted."""
    further, doubts = of_checkpoint.of(record)
    if len(record.timestamps) > _MAX_STAMPS:
        return further, "authority"
    proofs, reasons, covered = further[:], doubts[:], {}
    for data in _of_kind(record, "rfc4998"):
        try:
            found, objects = _evidence_record(data, record, clock)
        except tokens.NotProved as err:
            reasons.append(_rule(err))
            continue
        proofs += found
        for item in objects:
            covered.setdefault(item, []).extend(found)
    imprint = hashlib.sha256(b"".join(record.signatures)).digest()
    for data in _of_kind(record, "rfc3161"):
        try:
            _, proof = clock.accept(data, imprint)
            proofs.append(clock.shown(clock.present(proof), covered.get(data, [])))
        except tokens.NotProved as err:
            reasons.append(_rule(err))
    return proofs, next((rule for rule in _REASONS if rule in reasons), "pending")


def _of_kind(record, wanted):
    return [data for kind, data in record.timestamps if kind == wanted]


def _rule(err):
    if isinstance(err, evidencerecord.GroupUnknown):
        return "group"
    return err.rule if isinstance(err, Reason) else "authority"


def _evidence_record(data, record, clock):
    """The proofs of an evidence record, and the tokens that it covers."""
    found = evidencerecord.EvidenceRecord(data)
    objects = found.covered([b"".join(record.signatures), record.message], _of_kind(record, "rfc3161"))
    proofs = _tokens(found.stamps(), clock)
    return [clock.present(proof) for proof in proofs], objects


def _tokens(archive, clock):
    """The proofs of all tokens, from the last to the first: each is shown by the one after it."""
    accepted, reasons = [], []
    for stamp in archive:
        try:
            accepted.append(clock.accept(stamp.encoding, stamp.token.imprint, stamp.algorithm))
        except tokens.NotProved as err:
            reasons.append(err)
    if reasons:
        raise reasons[0]
    proofs = []
    for token, proof in reversed(accepted):
        if proofs:
            _check_renewed(token, proof, accepted[len(accepted) - len(proofs)][0], proofs[0])
        proofs.insert(0, clock.shown(proof, proofs[:1]))
    return proofs


def _check_renewed(token, proof, following, later):
    """A token whose certificates still stood when the next one was made, and that is not younger than that."""
    in_order = token.time <= following.time
    if not in_order or not tokens.path_is_valid(token, proof.authority, later.time):
        raise Reason("renewal")
