"""What the reader knows of the log: section "The reader's knowledge of the log", entries files and consistency files."""

import log
import tags
from canonical import Refused, form, parse, require, without_mark
from shapes import MAX_WHOLE, has, is_count, is_digest_not_zero, is_list_of, is_whole, one_of, unbase64

_CONSISTENCY = {"format": one_of("jurat/consistency/v1"), "from": is_count, "to": is_count} | {
    "origin": lambda value: isinstance(value, str) and log.is_origin(value),
    "proof": lambda value: isinstance(value, list) and len(value) <= 64,
}
_MAX_ENTRY = 175_828


def read_checkpoint(data):
    """A checkpoint file as a signed note. What is no text is one that nobody signed."""
    require(data, "an empty file is no checkpoint")
    try:
        return log.mended_note(data).decode("utf-8")
    except UnicodeDecodeError:
        return "\n"


class Consistency:
    """A consistency file. Raises Refused for what is none."""

    def __init__(self, data):
        value = parse(without_mark(data), bounded=False)
        require(has(value, _CONSISTENCY) and value["from"] <= value["to"], "no consistency file")
        self.origin, self.sizes = value["origin"], (int(value["from"]), int(value["to"]))
        self.proof = [unbase64(node, 32, 32) for node in value["proof"]]
        require(not self.proof or 0 < self.sizes[0] < self.sizes[1], "a proof where none is needed")


def _root(leaves):
    """The root of the tree over leaves (RFC 9162, section 2.1.1)."""
    if len(leaves) < 2:
        return leaves[0] if leaves else log.EMPTY_ROOT
    half = 1 << (len(leaves) - 1).bit_length() - 1
    return log.node_hash(_root(leaves[:half]), _root(leaves[half:]))


class Ended(Exception):
    """A rule found something, and nothing more is asked."""


def guarantee_of(kind):
    """Which guarantee rests on what the reader knows of the log."""
    return "order" if kind == "record" else "completeness"


def check(opened, own, reader, trust, findings):
    """Holds the log of a file, by its checkpoint (None: none that counts), against the log that the reader knows."""
    if reader.checkpoint is None and reader.entries is None:
        return
    guarantee = guarantee_of(opened.kind)
    findings.ask(guarantee)
    try:
        known = _known(own, reader, trust, guarantee, findings)
        _check_history(own, known, reader, guarantee, findings)
        if reader.entries is not None:
            _check_entries(opened, own, known, reader.entries, guarantee, findings)
        chained = any("chain_id" in record.payload for record in opened.records)
        findings.compared = reader.checkpoint is not None
        if opened.kind == "bundle" and (reader.entries is None or known.size < own.size or not chained):
            findings.doubt("completeness", "tail")
    except Ended:
        return


def _known(own, reader, trust, guarantee, findings):
    """The checkpoint that the reader knows; with entries alone it is the file's own."""
    if own is None:
        findings.doubt(guarantee, "checkpoint")
        raise Ended
    if reader.checkpoint is None:
        return own
    try:
        known = log.open_checkpoint(reader.checkpoint, trust.logs)
        require(known.origin == own.origin, "another log")
    except (log.Unsigned, Refused) as err:
        findings.doubt(guarantee, "checkpoint", reason=str(err))
        raise Ended from err
    return known


def _fork(guarantee, findings):
    for forked in dict.fromkeys(("order", guarantee)):
        findings.refute(forked, "fork")
    raise Ended


def _check_history(own, known, reader, guarantee, findings):
    """Whether the shorter log is the beginning of the longer one."""
    small, large = sorted((known, own), key=lambda checkpoint: checkpoint.size)
    given = reader.consistency
    fits = given is not None and given.origin == known.origin and given.sizes == (small.size, large.size)
    try:
        if log.is_one_history(small, large, given.proof if fits else []):
            return
    except log.Fork:
        _fork(guarantee, findings)
    if reader.entries is None or known.size < own.size:
        findings.doubt(guarantee, "consistency")
        raise Ended


def _check_entries(opened, own, known, data, guarantee, findings):
    """Goes through all entries: they have the roots that they must, and no more of the file's chains than the file."""
    try:
        require(not data or data.endswith(b"\n"), "an entry without a line feed")
        lines = [line.removesuffix(b"\r") for line in without_mark(data).split(b"\n")[:-1]]
        entries, leaves = list(map(_entry, lines)), list(map(log.leaf_hash, lines))
        require(len(leaves) == known.size and _root(leaves) == known.root, "not the entries of the checkpoint")
    except Refused as err:
        findings.doubt(guarantee, "entries", reason=str(err))
        raise Ended from err
    if known.size >= own.size and _root(leaves[: own.size]) != own.root:
        _fork(guarantee, findings)
    if not tags.are_counted(entries, opened.records, guarantee, findings):
        raise Ended
    if opened.kind != "record":
        _check_chains(opened.records, entries, findings)
        _check_cases(opened.records, entries, findings)
        if any(item["guarantee"] == "completeness" and item["rule"] in ("count", "cut") for item in findings.details):
            raise Ended


_ENTRY = {"payload": is_digest_not_zero, "signatures": lambda value: is_list_of(value, lambda _: True, 16)}
_TAGS = dict.fromkeys(("actor", "case", "chain", "subject"), is_digest_not_zero)
_NUMBERS = dict.fromkeys([tag + "_seq" for tag in _TAGS], lambda value: is_whole(value, 1, MAX_WHOLE))


def _entry(line):
    require(len(line) <= _MAX_ENTRY, "an entry that is too long")
    value = parse(line, bounded=False)
    require(form(value) == line, "an entry that is not canonical")
    require(has(value, _ENTRY, _TAGS | _NUMBERS), "a member of an entry is not what it must be")
    for signature in value["signatures"]:
        unbase64(signature, most=8192)
    for name in ("actor", "chain", "subject"):
        require((name in value) == (name + "_seq" in value), f"{name} without its count, or the count without it")
    require("subject" not in value or "actor" in value, "a subject without an actor")
    require("case_seq" not in value or "case" in value, "case_seq without case")
    return value


def _check_chains(records, entries, findings):
    for chain in dict.fromkeys(record.get("chain_id") for record in records if "chain_id" in record.payload):
        here = {record.digest for record in records if record.get("chain_id") == chain}
        logged = [entry for entry in entries if entry.get("chain") == log.tag("chain", chain)]
        if [entry["chain_seq"] for entry in logged] != list(range(1, len(logged) + 1)):
            findings.refute("completeness", "count")
        elif any(entry["payload"] not in here for entry in logged):
            findings.refute("completeness", "cut")


def _check_cases(records, entries, findings):
    for record in records:
        if record.action == "submission":
            tag = log.tag("case", record.get("case"))
            counts = [entry["case_seq"] for entry in entries if entry.get("case") == tag and "case_seq" in entry]
            if counts != list(range(1, len(counts) + 1)):
                findings.refute("completeness", "count", record)
