"""The reader's trust file: section "Trust file" of docs/format.md."""

import re

import keys
import log
from canonical import parse, require, without_mark
from certificates import Certificate
from payload import ALGORITHMS
from shapes import digest_of, digest_of_value, has, is_digest, is_digest_not_zero, is_filled, is_sorted, is_whole, members, moment, of, one_of, unbase64

FORMAT = "jurat/trust/v1"
ROLES = ("agent", "reviewer", "submitter", "juror", "judge", "clerk", "operator", "recorder")
_OID = re.compile(r"[0-2](\.(0|[1-9]\d*))+\Z", re.ASCII)


_YEAR_ONE = moment("0001-01-01T00:00:00Z")


def _is_moment(value):
    """A time, but not the one that stands for none."""
    return isinstance(value, str) and moment(value) not in (None, _YEAR_ONE)


def _is_territory(value):
    return isinstance(value, str) and bool(re.match(r"[A-Z]{2}\Z", value))


def _is_oid(value):
    first, second = (value.split(".") + [""])[:2] if isinstance(value, str) else ("", "")
    return bool(first and _OID.match(value)) and (first == "2" or int(second) < 40)


def _all(check, least=0, once=False):
    return lambda value: isinstance(value, list) and len(value) >= least and all(map(check, value)) and not (once and len(set(value)) < len(value))


def _maybe(**checks):
    """Members that may be left out, or null."""
    return {name: lambda value, check=check: value is None or check(value) for name, check in checks.items()}


_is_anything = of(object)
_OWNED = {"name": is_filled, "custody": one_of("owner", "operator")}
_LIST = {"sequence": lambda value: is_whole(value, 1, 2**31 - 1), "digest": is_digest_not_zero}
# Of each object its members, and those that may be left out.
_KEY = (
    _OWNED | {"role": one_of(*ROLES), "alg": one_of(*ALGORITHMS), "key_id": is_digest, "public_key": _is_anything},
    _maybe(not_before=_is_moment, not_after=_is_moment, with_from=_is_moment, revoked=_is_moment, **{"with": _all(is_digest, 1, True)}),
)
_AUTHORITY = (
    {"name": is_filled, "certificate": _is_anything, "clock": one_of("independent", "operator")},
    _maybe(policies=_all(_is_oid), revocation=one_of("", "crl", "none"), not_after=_is_moment, services=_all(_is_anything)),
)
_SERVICE = {"territory": _is_territory, "tsp": _all(is_filled, 1), "status": _all(_is_anything, 1)} | dict.fromkeys(("name", "type"), is_filled) | {
    "list": lambda value: has(value, _LIST | {"issued": _is_moment}, _maybe(next_update=_is_moment))
}
_STATUS = {"from": _is_moment, "status": is_filled}, _maybe(type=of(str))
_LISTS = (
    {"oj": _all(is_digest_not_zero, 1), "lotl": lambda value: has(value, _LIST), "issued": _is_moment},
    _maybe(territories=_all(_is_territory), granted_since=_is_moment),
)
_CA = (
    _OWNED | {"certificate": _is_anything, "roles": _all(one_of(*ROLES), 1, True)},
    _maybe(revocation=one_of("", "crl", "short", "none")),
)


class Key:
    """A key that the reader knows."""

    def __init__(self, source):
        require(has(source, *_KEY), "a key has a member that is not what it must be")
        self.name, self.role, self.algorithm = source["name"], source["role"], source["alg"]
        self.id, self.custody, self.spki = source["key_id"], source["custody"], unbase64(source["public_key"])
        keys.check_key(self.algorithm, self.spki)
        require(self.id == digest_of(self.spki), "key_id is not the key's")
        self.not_before, self.not_after, self.revoked, self.with_from = (
            _time(source, name) for name in ("not_before", "not_after", "revoked", "with_from")
        )
        ends = self.not_before is not None and self.not_after is not None
        require(not ends or self.not_before <= self.not_after, "not_after is before not_before")
        self.with_keys = _list(source, "with")
        require(self.with_from is None or self.with_keys, "with_from without with")


class Authority:
    """A time-stamping authority that the reader trusts."""

    def __init__(self, source):
        require(has(source, *_AUTHORITY), "an authority has a member that is not what it must be")
        self.name, self.clock, self.root = source["name"], source["clock"], unbase64(source["certificate"])
        Certificate(self.root)  # refuses what is none
        self.policies, self.not_after = _list(source, "policies"), _time(source, "not_after")
        self.revocation = source.get("revocation") or "none"
        self.services = [Service(item) for item in _list(source, "services")]


class Service:
    """What a trusted list says of a service."""

    def __init__(self, source):
        require(has(source, _SERVICE), "a service has a member that is not what it must be")
        self.providers, self.territory, self.name, self.sequence = source["tsp"], source["territory"], source["name"], source["list"]["sequence"]
        self.issued, self.next_update = _time(source["list"], "issued"), _time(source["list"], "next_update")
        require(all(has(status, *_STATUS) for status in source["status"]), "a status has a member that is not what it must be")
        self._states = [(_time(status, "from"), status.get("type") or source["type"], status["status"]) for status in source["status"]]
        for later, earlier in zip(self._states, self._states[1:]):
            require(earlier[0] < later[0] or earlier == later, "a history that is not in order")

    def at(self, time):
        """Its type and its status at a moment; None twice if the list says nothing of it."""
        return next(((kind, status) for begins, kind, status in self._states if begins <= time), (None, None))


class CA:
    """A certification authority that the reader trusts to say whose keys are whose."""

    def __init__(self, source):
        require(has(source, *_CA), "a CA has a member that is not what it must be")
        self.name, self.custody, self.roles = source["name"], source["custody"], source["roles"]
        self.certificate = Certificate(unbase64(source["certificate"]))
        require(self.certificate.is_ca(), "not a CA's certificate")
        self.revocation = source.get("revocation") or "crl"


class NoteKey:
    """The Ed25519 key of a log or a witness that the reader trusts, as signed notes write it: NAME+HASH+KEY, with the kind of signature before the key."""

    def __init__(self, source, kind, is_named):
        require(isinstance(source, str), "a key is no string")
        name, separator, rest = source.partition("+")
        key_hash, second, key = rest.partition("+")
        require(separator and second and is_named(name), "not a key of a signed note")
        data = unbase64(key)
        require(len(data) == 33 and data[0] == kind, "not an Ed25519 key of this kind")
        require(digest_of(name.encode() + b"\n" + data)[7:15] == key_hash, "the hash is not the key's")
        self.name, self.hash = name, bytes.fromhex(key_hash)
        self.spki = keys.ED25519_PREFIX + data[1:]
        keys.check_key("Ed25519", self.spki)


def _is_log_name(name):
    return bool(name) and not any(char.isspace() for char in name)


class Trust:
    """A whole trust file."""

    def __init__(self, data):
        source = members(parse(without_mark(data)), ("format",), ("keys", "authorities", "cas", "logs", "witnesses", "quorum", "lists"))
        require(source["format"] == FORMAT, "not a trust file")
        key_list = [Key(item) for item in _list(source, "keys")]
        self.keys = {key.id: key for key in key_list}
        require(len(self.keys) == len(key_list), "a key_id twice")
        for key in key_list:
            others = [self.keys.get(other) for other in key.with_keys]
            require(None not in others and key not in others, "with names a key that is not in the file")
            require(all((other.name, other.role) == (key.name, key.role) for other in others), "with names a key of another actor or role")
        self.authorities = [Authority(item) for item in _list(source, "authorities")]
        _no_two([authority.root for authority in self.authorities])
        require(source.get("lists") is not None or not any(authority.services for authority in self.authorities), "services without lists")
        if source.get("lists") is not None:
            require(has(source["lists"], *_LISTS), "the lists that authorities were taken from are not what they must be")
            lists = [_list(source["lists"], name) for name in ("oj", "territories")]
            require(all(map(is_sorted, lists)), "a list that is not sorted, or has something twice")
        self.cas = [CA(item) for item in _list(source, "cas")]
        _no_two([ca.certificate.encoding for ca in self.cas])
        self.logs = [NoteKey(item, 1, _is_log_name) for item in _list(source, "logs")]
        _no_two(_list(source, "logs"))
        is_name = lambda name: _is_log_name(name) and log.is_origin(name)
        self.witnesses = [NoteKey(item, 4, is_name) for item in _list(source, "witnesses")]
        _no_two([known.spki for known in self.witnesses + self.logs])
        quorum = source.get("quorum") or 0.0
        require(is_whole(quorum, 1 if self.witnesses else 0, len(self.witnesses)), "quorum is not what it must be")
        self.quorum = int(quorum)
        self.fingerprint = digest_of_value(_normal(source))


def _no_two(items):
    require(len(set(items)) == len(items), "the same twice")


def _list(source, name):
    value = source.get(name)
    require(value is None or isinstance(value, list), f"{name} is no array")
    return value or []


def _time(source, name):
    return moment(source[name]) if source.get(name) is not None else None


_TIMES = ("not_before", "not_after", "with_from", "revoked", "from", "issued", "next_update", "granted_since", "at", "to")


def _normal(source):
    """The content of which the fingerprint is the digest."""
    first = {name: _normal_member(_list(source, name)) for name in ("keys", "authorities", "logs")}
    return first | _normal_item({name: value for name, value in source.items() if name not in first and value})


def _normal_item(item):
    kept = {name: value for name, value in item.items() if value not in (None, [], "")}
    return {name: _normal_time(value) if name in _TIMES else _normal_member(value) for name, value in kept.items()}


def _normal_member(value):
    if isinstance(value, list):
        return [_normal_member(item) for item in value]
    return _normal_item(value) if isinstance(value, dict) else value


def _normal_time(text):
    """A time without zeros at the end of its fraction, which has 9 digits at most, otherwise as it is written."""
    text = re.sub(r"\.\d+", lambda match: match[0][:10].rstrip("0").rstrip("."), text, flags=re.ASCII)
    return re.sub(r"[+-]00:00\Z", "Z", text)


NO_TRUST = Trust(b'{"format":"jurat/trust/v1"}')  # what a reader believes who has no trust file
NO_TRUST.fingerprint = None
