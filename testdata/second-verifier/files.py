"""Opening record files and bundle files: sections "Record file", "Bundle file" and "The file"."""

import hashlib
import re

import payload as payloads
from canonical import Refused, check_bounds, check_values, depth, form, parse, require, without_mark
from log import COUNTS
from shapes import MAX_WHOLE, digest_of_value, has, is_digest_not_zero, is_whole, members, unbase64

BUNDLE = "jurat/bundle/v1"
_MAX_TOKEN = 65_536
_MAX_ANCHOR_TOKENS, _MAX_ANCHOR_BYTES = 1024, 8 << 20
# A payload may be 128 deep, and stands at most 3 deep in a file; so does the value of a disclosure, 5 deep.
_MAX_FILE_DEPTH = 133
_MAX_PROPERTIES = 64
_MAX_STATEMENT = 64 << 10
_MAX_PROOF = 1 << 20
_MAX_PROPERTY_BYTES = 4 << 20
_SPACE = b" \t\r\n"
_FIRST_MEMBER = re.compile(rb'[ \t\r\n]*\{[ \t\r\n]*"([a-z_]*)"')
_OF_RECORDS = b"certificates digest disclosures log payload signatures timestamps".split()
_TELLING = (b'"schema":"jurat/evidence/v1"', b'"format":"jurat/bundle/v1"', b'"signatures":[', b'"timestamps":[', b'"records":[')


class NoFile(Exception):
    """What is given is no file of this format, not even a damaged one."""


class Record:
    """An opened record: its members are in the form that the format wants; nothing else is known of them."""

    def __init__(self, source, in_bundle):
        members(source, ("digest", "payload", "signatures", "timestamps"), ("certificates", "disclosures", "log", "properties"))
        check_values(source)
        self.payload = source["payload"]
        payloads.check(self.payload)
        self.digest = source["digest"]
        require(self.digest == digest_of_value(self.payload), "digest is not the payload's")
        self.message = form(self.payload)
        self.signatures = _array(source["signatures"], lambda item: unbase64(item, most=8192))
        self.raw_signatures = source["signatures"]
        require(len(self.signatures) == len(self.payload["signers"]), "other than one signature for each signer")
        self.timestamps = _timestamps(source["timestamps"])
        self.certificates = _optional(source, "certificates", lambda item: unbase64(item, most=_MAX_TOKEN))
        self.properties = _properties(source)
        self.disclosures = _optional(source, "disclosures", self._disclosure)
        pointers = [item["pointer"].encode() for item in self.disclosures]
        require(pointers == sorted(set(pointers)), "disclosures are not sorted")
        self.log = _log(source["log"], self.payload, in_bundle) if "log" in source else None

    id = property(lambda self: self.payload["record_id"])
    action = property(lambda self: self.payload["action_type"])
    role = property(lambda self: payloads.ACTS[self.action].role)
    actor = property(lambda self: self.payload["reviewer_id" if self.action == "human_review" else "agent_id"])
    is_trial_act = property(lambda self: self.role in payloads.TRIAL_ROLES)

    def _disclosure(self, item):
        members(item, ("pointer", "salt", "value"))
        require(item["pointer"] in self.payload.get("sealed_apart", []), "a disclosure of nothing that is sealed apart")
        check_bounds(item["value"])
        return {**item, "salt": unbase64(item["salt"], 32, 32)}

    def get(self, name, default=None):
        return self.payload.get(name, default)

    def named(self):
        """The digests of the records that this one names."""
        return {*self.get("saw", []), *([self.payload["previous_record"]] if "previous_record" in self.payload else [])}

    def disclosed(self, member):
        """The value of a member; (False, None) if it is withheld, or shown by no right disclosure."""
        pointer = "/" + member
        if pointer not in self.payload.get("sealed_apart", []):
            return True, self.payload.get(member)
        for item in self.disclosures:
            if item["pointer"] == pointer and payloads.opens(self.payload, item) and payloads.opens_second(self.payload, item):
                return True, item["value"]
        return False, None


class File:
    """An opened file: a record, or a bundle of them."""

    def __init__(self, is_bundle, records, checkpoint, anchors):
        self.is_bundle = is_bundle
        trial = any(record.is_trial_act for record in records)
        self.kind = "trial" if trial else "bundle" if is_bundle else "record"
        self.records = records
        self.checkpoint = checkpoint
        self.anchors = anchors
        self.mended = False


class Damaged(Exception):
    """The file is one of this format that does not open."""

    def __init__(self, kind, reason):
        super().__init__(reason)
        self.kind = kind


def open_file(data):
    """Opens a file. Raises Damaged if it is one of this format and does not open, NoFile if it is none."""
    try:
        value = parse(without_mark(data), bounded=False)
        require(depth(value) <= _MAX_FILE_DEPTH, "nested too deep")
        require(isinstance(value, dict), "not an object")
        opened = _bundle(value) if value.get("format") == BUNDLE else _record(value)
        opened.mended = form(value) + b"\n" != data
        return opened
    except Refused as err:
        plain = data.translate(None, _SPACE)
        if sum(text in plain for text in _TELLING) < 2:
            raise NoFile(str(err)) from err
        raise Damaged(_damaged_kind(plain, data), str(err)) from err


def open_record(data):
    """Opens a record file that stands in another file, in its one form."""
    value = parse(data, bounded=False)
    require(depth(value) <= _MAX_FILE_DEPTH and isinstance(value, dict), "no record")
    require(form(value) + b"\n" == data, "a record that is not in its one form")
    return _record(value)


def _damaged_kind(plain, data):
    first = _FIRST_MEMBER.match(without_mark(data))
    if BUNDLE.encode() not in plain or first and first[1] in _OF_RECORDS:
        return "record"
    return "trial" if b"submission" in plain or b"trial_closing" in plain else "bundle"


def _record(value):
    record = Record(value, in_bundle=False)
    log = record.log or {}
    return File(False, [record], log.get("checkpoint"), log.get("anchors", []))


def _bundle(value):
    members(value, ("format", "records"), ("anchors", "checkpoint"))
    check_values({**value, "records": []})
    checkpoint, anchors = _checkpoint(value)
    records = _array(value["records"], lambda item: Record(item, in_bundle=True), least=0)
    require(len({record.id for record in records}) == len(records), "a record_id that is there twice")
    places = [record.log["index"] for record in records if record.log]
    require(places == sorted(set(places)), "records are not in the order of the log")
    return File(True, records, checkpoint, anchors)


def _checkpoint(value):
    note = value.get("checkpoint", "absent")
    require(isinstance(note, str) and note != "", "checkpoint is not what it must be")
    anchors = []
    if "anchors" in value:
        require("checkpoint" in value, "anchors without a checkpoint")
        anchors = _array(value["anchors"], Anchor)
        everything = [token for anchor in anchors for token in anchor.tokens()]
        require(len(everything) <= _MAX_ANCHOR_TOKENS, "anchors have too many tokens")
        size = sum(map(len, everything)) + sum(len(anchor.checkpoint.encode()) for anchor in anchors)
        require(size <= _MAX_ANCHOR_BYTES, "anchors are too long")
    return value.get("checkpoint"), anchors


class Anchor:
    """A stamped checkpoint whose form is what it must be."""

    def __init__(self, source):
        members(source, ("checkpoint", "consistency", "timestamps"))
        self._source, self.checkpoint = source, source["checkpoint"]
        require(isinstance(self.checkpoint, str) and self.checkpoint != "", "checkpoint is not what it must be")
        self.consistency = _array(source["consistency"], lambda item: unbase64(item, 32, 32), least=0)
        require(len(self.consistency) <= 64, "consistency is too long")
        self.generations = _array(source["timestamps"], lambda tokens: _array(tokens, lambda item: unbase64(item, most=_MAX_TOKEN)))
        require(len(set(self.tokens())) == len(self.tokens()), "a token is there twice")

    def tokens(self):
        return [token for generation in self.generations for token in generation]

    def imprints(self):
        """What the tokens of each generation are over, in time by the size of it all."""
        found, whole = [hashlib.sha256(self.checkpoint.encode()).digest()], None
        before = hashlib.sha256(form({"checkpoint": self.checkpoint, "timestamps": []})[:-2])
        for generation in self._source["timestamps"]:
            before.update((b"," if whole else b"") + form(generation))
            whole = before.copy()
            whole.update(b"]}")
            found.append(whole.digest())
        return found


def _log(value, payload, in_bundle):
    members(value, ("index", "proof"), COUNTS + ("anchors", "checkpoint"))
    require(is_whole(value["index"], 0, MAX_WHOLE), "index is not what it must be")
    for name, wanted in (("case_seq", payload["action_type"] == "submission"), ("chain_seq", "chain_id" in payload)):
        require((name in value) == wanted, f"{name} is there, or missing, against the rules")
        require(not wanted or is_whole(value[name], 1, MAX_WHOLE), f"{name} is not what it must be")
    for name in ("actor_seq", "subject_seq"):
        require(name not in value or is_whole(value[name], 1, MAX_WHOLE), f"{name} is not what it must be")
    if "subject" in value or "subject_seq" in value:
        require({"actor_seq", "subject", "subject_seq"} <= set(value), "a subject without its count, or without an actor's")
        require(payload["action_type"] in ("final_judgment", "human_review", "key_event"), "a subject of what judges none")
        require(is_digest_not_zero(value["subject"]), "subject is not what it must be")
    proof = _array(value["proof"], lambda item: unbase64(item, 32, 32), least=0)
    require(len(proof) <= 63, "proof is too long")
    require(not in_bundle or not {"anchors", "checkpoint"} & set(value), "a checkpoint inside a bundle")
    checkpoint, anchors = _checkpoint(value)
    return {**value, "proof": proof, "checkpoint": checkpoint, "anchors": anchors}


def _timestamps(value):
    require(isinstance(value, list) and all(has(item, {"kind": lambda kind: kind == "rfc3161", "token": lambda _: True}) for item in value), "no time stamps")
    tokens = [unbase64(item["token"], most=_MAX_TOKEN) for item in value]
    require(len(set(tokens)) == len(tokens), "a token is there twice")
    return tokens


def _array(value, read, least=1):
    require(isinstance(value, list) and len(value) >= least, "not an array of what it must hold")
    return [read(item) for item in value]


def _optional(source, name, read):
    return _array(source[name], read) if name in source else []


def _properties(source):
    """Statements and proofs, whose form alone is known."""
    found = _optional(source, "properties", _property)
    require(len(found) <= _MAX_PROPERTIES, "too many properties")
    require(len({form(statement) + proof for statement, proof in found}) == len(found), "a property is there twice")
    require(sum(len(form(statement)) + len(proof) for statement, proof in found) <= _MAX_PROPERTY_BYTES, "properties are too long")
    return found


def _property(item):
    members(item, ("proof", "statement"))
    require(isinstance(item["statement"], dict) and len(form(item["statement"])) <= _MAX_STATEMENT, "no statement")
    check_bounds(item["statement"])
    return item["statement"], unbase64(item["proof"], most=_MAX_PROOF)


