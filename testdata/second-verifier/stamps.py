"""When a record existed: its time stamps, those of stamped checkpoints, and whose word still counts.

Sections "Times", "Tokens", "Stamped checkpoints" and "Qualified time" in docs/format.md.
"""

import hashlib
from contextlib import suppress

import log
import tokens
from canonical import Refused
from certificates import Effort
from shapes import moment, time_text

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


class Clock:
    """What the reader believes of times: the authorities, and the moment of checking."""

    def __init__(self, trust, at):
        self.authorities, self.at, self.effort = trust.authorities, at, Effort()
        self.roots = [authority.root for authority in self.authorities]

    def accept(self, data, imprint, by):
        """The proof by the first authority by which a token proves a time; it existed by the times of these other proofs. Raises Refused or NotProved."""
        rules = []
        for authority in self.authorities or [None]:
            try:
                token = tokens.verify(data, imprint, authority, self.effort, self.roots)
                proof = self.shown(self.present(Proof(token.proved_time(), authority)), by, token)
                proof.qualified = self._qualified(token, services_of(data, imprint, self, by), by)
                return proof
            except tokens.NotProved as err:
                rules.append(err.rule)
        rule = next(rule for rule in _REASONS if rule in rules)
        raise tokens.NotProved(rule, rule)

    def _qualified(self, token, services, by):
        """What the trusted lists say of a token."""
        try:
            return judge(token, services, min(by, key=lambda proof: proof.time, default=None), self.at)
        except tokens.NotProved as err:
            return err.rule

    def believes(self, authority):
        """Whether an authority is believed by itself."""
        return authority.not_after is None or (self.at is not None and self.at <= authority.not_after)

    def present(self, proof):
        """The proof, unless its time is yet to come."""
        _unless(self.at is None or proof.time <= self.at + _SKEW, "future")
        return proof

    def shown(self, proof, by, token, direct=False):
        """The proof, if its authority is believed, or one of these later proofs shows that it existed in time."""
        if self.believes(proof.authority):
            return proof
        in_time = [later for later in by if later.time <= proof.authority.not_after and tokens.path_is_valid(token, proof.authority, later.time, direct)]
        _unless(in_time, "renewal")
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
    for imprint, generation in reversed(list(zip(anchor.imprints(), anchor.generations))):
        found, rules = _accepted(generation, imprint, proofs[:], clock)
        proofs, reasons = proofs + found, reasons + rules
    return proofs, reasons


def _accepted(stamps, imprint, by, clock):
    """The proofs of tokens over the same, and the rules by which others are none."""
    proofs, reasons = [], []
    for data in stamps:
        try:
            proofs.append(clock.accept(data, imprint, by))
        except tokens.NotProved as err:
            reasons.append(err.rule)
    return proofs, reasons


def proofs_of(record, anchors, clock):
    """All proofs of a record's time, and the rule by which there is none. Raises Refused if a time stamp is refuted."""
    further, doubts = anchors.of(record)
    found, rules = [], ["authority"]
    if len(record.timestamps) <= _MAX_STAMPS:
        found, rules = _accepted(record.timestamps, hashlib.sha256(b"".join(record.signatures)).digest(), [], clock)
    return further + found, next((rule for rule in _REASONS if rule in doubts + rules), "pending")


# Whether a token is a qualified one by the reader's trusted lists.
_TYPE = "http://uri.etsi.org/TrstSvc/Svctype/TSA/QTST"
_GRANTED = "http://uri.etsi.org/TrstSvc/TrustedList/Svcstatus/granted"
_EIDAS = moment("2016-06-30T22:00:00Z")
_TERRITORIES = {"GR": "EL", "GB": "UK"}
_COUNTRY, _ORGANISATION = "2.5.4.6", "2.5.4.10"
# A record's tokens may break several rules. The first of these is given.
_FURTHEST = ("list", "operator-name", "status", "service", "before-eidas")


def judge(token, services, other, at):
    """What the report says of a qualified token: None if no service is asked. Raises NotProved.

    The services are triples of an authority, its service, and whether the token proves a time by the authority; other is the
    earliest other proof of the token's existence, or None.
    """
    if not any(proves for _, _, proves in services):
        return None
    _unless(token.time >= _EIDAS, "before-eidas")
    found = [item for item in services if item[1].at(token.time)[0] == _TYPE]
    named = next(((authority, service) for authority, service, proves in found if proves), None)
    _unless(named, "service")
    for _, service, _ in found:
        _unless(all(service.at(time) == (_TYPE, _GRANTED) for time in [token.time] + ([other.time] if other else [])), "status")
    countries, organisations = (token.certificate.names(kind) for kind in (_COUNTRY, _ORGANISATION))
    for _, service, _ in found:
        _unless(len(countries) == 1 and len(organisations) == 1, "operator-name")
        _unless(_TERRITORIES.get(countries[0], countries[0]) == service.territory, "operator-name")
        _unless(organisations[0] in service.providers, "operator-name")
    for _, service, _ in found:
        _unless(_is_fresh(service, token, at), "list")
    authority, service = named
    return {
        "time": token.proved_time(),
        "authority": authority.name,
        "territory": service.territory,
        "tsp": organisations[0],
        "service": service.name,
        "list": {"sequence": int(service.sequence), "issued": time_text(service.issued)},
    }


def _unless(holds, rule):
    if not holds:
        raise tokens.NotProved(rule, rule)


def _is_fresh(service, token, at):
    if service.next_update is None:
        return token.time <= service.issued
    return at is not None and at <= service.next_update


def services_of(data, imprint, clock, by):
    """The services of all authorities whose certificate is the token signer's, or that of the CA which issued it."""
    found = []
    for authority in clock.authorities:
        if authority.services:
            with suppress(Refused, tokens.NotProved):
                _direct(data, imprint, authority, clock, policies=False)
                found += [(authority, service, _proves(data, imprint, authority, clock, by)) for service in authority.services]
    return found


def _direct(data, imprint, authority, clock, policies):
    """The token, if no certificate stands between its signer's and the authority's. Raises Refused or NotProved."""
    budget = Effort()
    with budget.part():
        return tokens.verify(data, imprint, authority, budget, clock.roots, direct=True, policies=policies)


def _proves(data, imprint, authority, clock, by):
    """Whether a token that is directly an authority's proves a time by it, by the authority's own clock."""
    try:
        token = _direct(data, imprint, authority, clock, policies=True)
        return clock.shown(clock.present(Proof(token.proved_time(), authority)), by, token, direct=True).clock == authority.clock
    except (Refused, tokens.NotProved):
        return False


def of_proofs(proofs):
    """The earliest qualified time of a record and None, or None and the rule by which there is none."""
    qualified = [proof.qualified for proof in proofs if isinstance(proof.qualified, dict)]
    if qualified:
        found = min(qualified, key=lambda item: item["time"])
        return found | {"time": time_text(found["time"])}, None
    rules = [proof.qualified for proof in proofs]
    return None, next((rule for rule in _FURTHEST if rule in rules), "service")
