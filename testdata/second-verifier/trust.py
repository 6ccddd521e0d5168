"""The reader's trust file: section "Trust file" of docs/format.md."""

import re

import keys
from canonical import parse, without_mark
from certificates import Certificate
from payload import ALGORITHMS
from shapes import digest_of, digest_of_value, is_digest, is_digest_not_zero, is_whole, members, moment, require, unbase64

FORMAT = "jurat/trust/v1"
ROLES = ("agent", "reviewer", "submitter", "juror", "judge", "clerk", "operator", "recorder")
_OID = re.compile(r"[0-2](\.(0|[1-9]\d*))+\Z", re.ASCII)


class Key:
    """A key that the reader knows."""

    def __init__(self, source):
        required = ("name", "role", "alg", "key_id", "public_key", "custody")
        members(source, required, ("not_before", "not_after", "with", "with_from", "revoked"))
        self.name, self.role, self.algorithm = source["name"], source["role"], source["alg"]
        self.id, self.custody = source["key_id"], source["custody"]
        require(isinstance(self.name, str) and self.name, "a key without a name")
        require(self.role in ROLES, "no such role")
        require(self.algorithm in ALGORITHMS, "no such algorithm")
        require(self.custody in ("owner", "operator"), "no such custody")
        self.spki = unbase64(source["public_key"])
        keys.check_key(self.algorithm, self.spki)
        require(self.id == digest_of(self.spki), "key_id is not the key's")
        self.not_before, self.not_after = _time(source, "not_before"), _time(source, "not_after")
        if self.not_before is not None and self.not_after is not None:
            require(self.not_before <= self.not_after, "not_after is before not_before")
        self.revoked = _time(source, "revoked")
        self.with_keys = _list(source, "with")
        require(all(map(is_digest, self.with_keys)), "with names no key ids")
        require(len(set(self.with_keys)) == len(self.with_keys), "with names a key twice")
        require(source.get("with") != [], "with is empty")
        self.with_from = _time(source, "with_from")
        require(self.with_from is None or self.with_keys, "with_from without with")


class Authority:
    """A time-stamping authority that the reader trusts."""

    def __init__(self, source):
        members(source, ("name", "certificate", "clock"), ("policies", "revocation", "not_after", "services"))
        self.name, self.clock = source["name"], source["clock"]
        require(isinstance(self.name, str) and self.name, "an authority without a name")
        require(self.clock in ("independent", "operator"), "no such clock")
        self.root = unbase64(source["certificate"])
        Certificate(self.root)  # refuses what is none
        self.policies = _list(source, "policies")
        require(all(isinstance(item, str) and _is_oid(item) for item in self.policies), "no object identifier")
        self.not_after = _time(source, "not_after")
        self.revocation = _text(source, "revocation") or "none"
        require(self.revocation in ("crl", "none"), "no such revocation")
        self.services = [Service(item) for item in _list(source, "services")]


class Service:
    """What a trusted list says of a service."""

    def __init__(self, source):
        members(source, ("territory", "tsp", "name", "type", "status", "list"), ())
        require(_is_territory(source["territory"]), "no territory")
        self.providers = _list(source, "tsp")
        require(all(isinstance(item, str) and item for item in self.providers) and self.providers, "a provider without a name")
        for name in ("name", "type"):
            require(isinstance(source[name], str) and source[name], f"a service without {name}")
        _check_list_version(source["list"], ("issued",), ("next_update",))
        self.territory, self.name, self.sequence = source["territory"], source["name"], source["list"]["sequence"]
        self.issued, self.next_update = _time(source["list"], "issued"), _time(source["list"], "next_update")
        require(self.issued is not None, "a list that was never issued")
        require(_list(source, "status"), "a service without a status")
        self._states = [_state(status, source["type"]) for status in source["status"]]
        for later, earlier in zip(self._states, self._states[1:]):
            require(earlier[0] < later[0] or earlier == later, "a history that is not in order")

    def at(self, time):
        """Its type and its status at a moment; None twice if the list says nothing of it."""
        return next(((kind, status) for begins, kind, status in self._states if begins <= time), (None, None))


def _state(source, kind):
    """Since when a service has had a type and a status."""
    members(source, ("from", "status"), ("type",))
    require(isinstance(source["status"], str) and source["status"], "no status")
    begins = _time(source, "from")
    require(begins is not None, "a status that never began")
    return begins, _text(source, "type") or kind, source["status"]


def _check_list_version(source, required=(), optional=()):
    members(source, ("sequence", "digest") + required, optional)
    require(is_whole(source["sequence"], 1, 2**31 - 1), "no sequence number")
    require(is_digest_not_zero(source["digest"]), "no digest")


def _text(source, name):
    """An optional text; "" if it is not there."""
    value = source.get(name)
    require(value is None or isinstance(value, str), f"{name} is no string")
    return value or ""


def _is_territory(text):
    return isinstance(text, str) and bool(re.match(r"[A-Z]{2}\Z", text))


def _check_lists(source):
    """The trusted lists that authorities were taken from."""
    members(source, ("oj", "lotl", "issued"), ("territories", "granted_since"))
    journal, territories = _list(source, "oj"), _list(source, "territories")
    require(journal and all(map(is_digest_not_zero, journal)), "oj names no certificates")
    require(all(map(_is_territory, territories)), "no territory")
    for items in (journal, territories):
        require(items == sorted(set(items)), "a list that is not sorted, or has something twice")
    _check_list_version(source["lotl"])
    require(_time(source, "issued") is not None, "a list that was never issued")
    _time(source, "granted_since")


class CA:
    """A certification authority that the reader trusts to say whose keys are whose."""

    def __init__(self, source):
        members(source, ("name", "certificate", "roles", "custody"), ("revocation",))
        self.name, self.custody = source["name"], source["custody"]
        require(isinstance(self.name, str) and self.name, "a CA without a name")
        require(self.custody in ("owner", "operator"), "no such custody")
        self.certificate = Certificate(unbase64(source["certificate"]))
        require(self.certificate.is_ca(), "not a CA's certificate")
        self.roles = _list(source, "roles")
        require(self.roles and all(role in ROLES for role in self.roles), "no such role")
        require(len(set(self.roles)) == len(self.roles), "a role twice")
        self.revocation = _text(source, "revocation") or "crl"
        require(self.revocation in ("crl", "short", "none"), "no such revocation")


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
            self._check_with(key)
        self.authorities = [Authority(item) for item in _list(source, "authorities")]
        _no_two([authority.root for authority in self.authorities])
        require(source.get("lists") is not None or not any(authority.services for authority in self.authorities), "services without lists")
        if source.get("lists") is not None:
            _check_lists(source["lists"])
        self.cas = [CA(item) for item in _list(source, "cas")]
        _no_two([ca.certificate.encoding for ca in self.cas])
        self.logs = [NoteKey(item, 1, _is_log_name) for item in _list(source, "logs")]
        _no_two(_list(source, "logs"))
        is_name = lambda name: _is_log_name(name) and not any(ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 for char in name)
        self.witnesses = [NoteKey(item, 4, is_name) for item in _list(source, "witnesses")]
        _no_two([known.spki for known in self.witnesses + self.logs])
        self.quorum = _quorum(source, len(self.witnesses))
        self.fingerprint = digest_of_value(_normal(source))

    def _check_with(self, key):
        for other in key.with_keys:
            require(other in self.keys and other != key.id, "with names a key that is not in the file")
            same = (self.keys[other].name, self.keys[other].role) == (key.name, key.role)
            require(same, "with names a key of another actor or role")


class NoTrust:
    """What a reader believes who has no trust file."""

    keys, authorities, cas, logs, fingerprint = {}, [], [], [], None
    witnesses, quorum = [], 0


def _quorum(source, witnesses):
    quorum = source.get("quorum") or 0.0
    require(is_whole(quorum, 1 if witnesses else 0, witnesses), "quorum is not what it must be")
    return int(quorum)


def _no_two(items):
    require(len(set(items)) == len(items), "the same twice")


def _is_oid(text):
    first, second = (text.split(".") + [""])[:2]
    return bool(_OID.match(text)) and (first == "2" or int(second) < 40)


def _list(source, name):
    value = source.get(name)
    require(value is None or isinstance(value, list), f"{name} is no array")
    return value or []


_YEAR_ONE = moment("0001-01-01T00:00:00Z")


def _time(source, name):
    if source.get(name) is None:
        return None
    value = moment(source[name]) if isinstance(source[name], str) else None
    require(value is not None, f"{name} is no time")
    require(value != _YEAR_ONE, f"{name} is the time that stands for none")
    return value


_TIMES = ("not_before", "not_after", "with_from", "revoked", "from", "issued", "next_update", "granted_since", "at", "to")


def _normal(source):
    """The content of which the fingerprint is the digest."""
    cas = [_normal_item(item) for item in _list(source, "cas")]
    later = {"cas": cas, "witnesses": _list(source, "witnesses"), "quorum": source.get("quorum"), "lists": _normal_item(source.get("lists") or {})}
    return {name: value for name, value in later.items() if value} | {
        "format": FORMAT,
        "keys": [_normal_item(item) for item in _list(source, "keys")],
        "authorities": [_normal_item(item) for item in _list(source, "authorities")],
        "logs": _list(source, "logs"),
    }


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
