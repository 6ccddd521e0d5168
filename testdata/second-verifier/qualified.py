"""Whether a token is a qualified one by the reader's trusted lists: section "Qualified time" of docs/format.md."""

import effort
import tokens
from canonical import Refused
from shapes import moment, time_text

_TYPE = "http://uri.etsi.org/TrstSvc/Svctype/TSA/QTST"
_GRANTED = "http://uri.etsi.org/TrstSvc/TrustedList/Svcstatus/granted"
_EIDAS = moment("2016-06-30T22:00:00Z")
_TERRITORIES = {"GR": "EL", "GB": "UK"}
_COUNTRY, _ORGANISATION = "2.5.4.6", "2.5.4.10"
# A record's tokens may break several rules. The first of these is given.
_FURTHEST = ("list", "operator-name", "status", "service", "before-eidas")


class Unqualified(Exception):
    """Why a token is not qualified, by its rule."""

    def __init__(self, rule):
        super().__init__(rule)
        self.rule = rule


def judge(token, services, other, at):
    """What the report says of a qualified token: None if no service is asked. Raises Unqualified.

    The services are triples of an authority, its service, and whether the token proves a time by the authority; other is the earliest other proof of the token's existence, or None.
    """
    if not any(proves for _, _, proves in services):
        return None
    if token.time < _EIDAS:
        raise Unqualified("before-eidas")
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
        raise Unqualified(rule)


def _is_fresh(service, token, at):
    if service.next_update is None:
        return token.time <= service.issued
    return at is not None and at <= service.next_update


def services_of(data, imprint, clock, by):
    """The services of all authorities whose certificate is the token signer's, or that of the CA which issued it."""
    found = []
    for authority in clock.authorities:
        if authority.services and _direct(data, imprint, authority, clock):
            proves = _proves(data, imprint, authority, clock, by)
            found += [(authority, service, proves) for service in authority.services]
    return found


def _direct(data, imprint, authority, clock, policies=False):
    """The token, if no certificate stands between its signer's and the authority's; otherwise None."""
    budget = effort.Effort()
    try:
        with budget.part():
            return tokens.verify(data, imprint, authority, budget, clock.roots, direct=True, policies=policies)
    except (Refused, tokens.NotProved):
        return None


def _proves(data, imprint, authority, clock, by):
    """Whether a token that is directly an authority's proves a time by it, by the authority's own clock."""
    token = _direct(data, imprint, authority, clock, policies=True)
    if token is None:
        return False
    try:
        proof = clock.shown(clock.present(clock.proof(token, authority)), by, token, direct=True)
    except tokens.NotProved:
        return False
    return proof.clock == authority.clock


def of_proofs(proofs):
    """The earliest qualified time of a record and None, or None and the rule by which there is none."""
    qualified = [proof.qualified for proof in proofs if isinstance(proof.qualified, dict)]
    if qualified:
        found = min(qualified, key=lambda item: item["time"])
        return found | {"time": time_text(found["time"])}, None
    rules = [proof.qualified for proof in proofs]
    return None, next((rule for rule in _FURTHEST if rule in rules), "service")
