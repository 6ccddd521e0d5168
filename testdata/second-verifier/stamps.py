"""When a record existed: its time stamps, those of stamped checkpoints, and whose word still counts.

Sections "Times", "Tokens" and "Stamped checkpoints" in docs/format.md.
"""

import hashlib

import effort
import log
import qualified
import tokens
from canonical import Refused

_SKEW = 5 * 60
_MAX_STAMPS = 128  # of a record; of more, none is looked at
# Of several reasons why no time is proved, the first of these is given.
_REASONS = ("future", "renewal", "effort", "authority")


class Proof:
    """A time, and who vouches for it. The clock can be worth less than the authority's own."""

    def __init__(self, time, authority, clock=None):
        self.time, self.authority = time, authority
        self.clock = clock or authority.clock
        self.qualified = None  # what the report says of it, or the rule by which it is not


class Reason(tokens.NotProved):
    """Why a time stamp proves nothing, by its rule."""

    def __init__(self, rule):
        super().__init__(rule)
        self.rule = rule


class Clock:
    """What the reader believes of times: the authorities, and the moment of checking."""

    def __init__(self, trust, at):
        self.authorities, self.at, self.effort = trust.authorities, at, effort.Effort()
        self.roots = [authority.root for authority in self.authorities]

    def accept(self, data, imprint, by):
        """The proof by the first authority by which a token proves a time; it existed by the times of these other proofs. Raises Refused or Reason."""
        rules = []
        for authority in self.authorities or [None]:
            try:
                token = tokens.verify(data, imprint, authority, self.effort, self.roots)
                proof = self.shown(self.present(self.proof(token, authority)), by, token)
                proof.qualified = self._qualified(token, qualified.services_of(data, imprint, self, by), by)
                return proof
            except tokens.NotProved as err:
                rules.append(_rule(err))
        raise Reason(next(rule for rule in _REASONS if rule in rules))

    def proof(self, token, authority):
        return Proof(token.proved_time(), authority)

    def _qualified(self, token, services, by):
        """What the trusted lists say of a token."""
        try:
            return qualified.judge(token, services, min(by, key=lambda proof: proof.time, default=None), self.at)
        except qualified.Unqualified as err:
            return err.rule

    def believes(self, authority):
        """Whether an authority is believed by itself."""
        return authority.not_after is None or (self.at is not None and self.at <= authority.not_after)

    def present(self, proof):
        """The proof, unless its time is yet to come."""
        if self.at is not None and proof.time > self.at + _SKEW:
            raise Reason("future")
        return proof

    def shown(self, proof, by, token, direct=False):
        """The proof, if its authority is believed, or one of these later proofs shows that it existed in time."""
        if self.believes(proof.authority):
            return proof
        in_time = [later for later in by if later.time <= proof.authority.not_after and tokens.path_is_valid(token, proof.authority, later.time, direct)]
        if not in_time:
            raise Reason("renewal")
        independent = any(later.clock == "independent" for later in in_time)
        return Proof(proof.time, proof.authority, None if independent else "operator")


class Anchors:
    """The stamped checkpoints of a file, whose own checkpoint is given as None if it does not count."""

    def __init__(self, opened, own, trust, clock):
        self._own, self._found = own, []
        self.forked, self.forged = False, []  # reasons, whoever signed the checkpoint
        for anchor in opened.anchors:
            size = self._size(anchor, trust)
            try:
                self._found.append((size, *_stamped(anchor, clock)))
            except Refused as err:
                self.forged.append(str(err))

    def _size(self, anchor, trust):
        """How many entries of the file's log it covers; None: it is not of this log, or that is not shown."""
        if self._own is None:
            return None
        try:
            found = log.open_checkpoint(anchor.checkpoint, trust.logs)
            small, large = sorted((found, self._own), key=lambda checkpoint: checkpoint.size)
            return found.size if found.origin == self._own.origin and log.is_one_history(small, large, anchor.consistency) else None
        except log.Fork:
            self.forked = True
        except (log.Unsigned, Refused):
            pass
        return None

    def of(self, record):
        """The proofs that they are for a record, and the rules by which they are none."""
        if self._own is None:
            return [], ["authority"] if self._found else []
        proofs, reasons = [], []
        if record.log is None or not log.is_included(record, self._own):
            return proofs, reasons
        for size, found, rules in self._found:
            if size is None:
                reasons.append("authority")
            elif record.log["index"] < size:
                proofs += found
                reasons += rules
        return proofs, reasons


def _stamped(anchor, clock):
    """The proofs of an anchor's tokens, and the rules by which others are none. Later generations show that earlier ones existed."""
    proofs, reasons = [], []
    imprints = anchor.imprints()
    for generation in reversed(range(len(anchor.generations))):
        imprint, shown = imprints[generation], proofs[:]
        for data in anchor.generations[generation]:
            try:
                proofs.append(clock.accept(data, imprint, shown))
            except tokens.NotProved as err:
                reasons.append(_rule(err))
    return proofs, reasons


def proofs_of(record, anchors, clock):
    """All proofs of a record's time, and the rule by which there is none. Raises Refused if a time stamp is refuted."""
    further, doubts = anchors.of(record)
    proofs, reasons = further[:], doubts[:]
    imprint = hashlib.sha256(b"".join(record.signatures)).digest()
    too_many = len(record.timestamps) > _MAX_STAMPS
    reasons += ["authority"] if too_many else []
    for data in [] if too_many else record.timestamps:
        try:
            proofs.append(clock.accept(data, imprint, []))
        except tokens.NotProved as err:
            reasons.append(_rule(err))
    return proofs, next((rule for rule in _REASONS if rule in reasons), "pending")


def _rule(err):
    if isinstance(err, tokens.TooLong):
        return "effort"
    return err.rule if isinstance(err, Reason) else "authority"
