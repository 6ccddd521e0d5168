"""Log entries, inclusion and checkpoints: section "Log" of docs/format.md."""

import hashlib
import re

import keys
from canonical import Refused, form, require, without_mark
from shapes import digest_of, unbase64

_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f]")
_SIGNATURE_LINE = re.compile(r"\u2014 ([^\s+]+) (\S+)\Z")
_MAX_NOTE = 1_000_000
_MAX_CHECKPOINT = 1_048_576
COUNTS = ("actor_seq", "case_seq", "chain_seq", "subject", "subject_seq")
EMPTY_ROOT = bytes.fromhex("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")


def entry(record):
    """What a log holds of a record."""
    payload = record.payload
    value = {"payload": record.digest, "signatures": record.raw_signatures}
    if "case" in payload:
        value["case"] = tag("case", payload["case"])
    if "chain_id" in payload:
        value["chain"] = tag("chain", payload["chain_id"])
    if "actor_seq" in record.log:
        value["actor"] = actor_tag(record.role, record.actor)
    value |= {name: record.log[name] for name in COUNTS if name in record.log}
    return form(value)


def actor_tag(role, name):
    """Also the tag of an actor that a record judges."""
    return tag("subject", role + ":" + name)


def tag(kind, text):
    """By what the entries of a log name a case, a chain or an actor."""
    return digest_of(f"jurat/{kind}/v1\0{text}".encode())


def leaf_hash(data):
    return hashlib.sha256(b"\0" + data).digest()


def node_hash(left, right):
    return hashlib.sha256(b"\1" + left + right).digest()


def is_included(record, checkpoint):
    """Whether the record's proof leads to the checkpoint's root (RFC 9162, section 2.1.3.2)."""
    index, last = int(record.log["index"]), checkpoint.size - 1
    return index <= last and _climb(index, last, leaf_hash(entry(record)), record.log["proof"])[1] == checkpoint.root


def _climb(index, last, start, path):
    """The roots of both trees, or of one, to which a path leads from a node; None, None where it has too many nodes or too few."""
    old = new = start
    for node in path:
        if last == 0:
            return None, None
        if index & 1 or index == last:
            old, new = node_hash(node, old), node_hash(node, new)
            while not index & 1 and index:
                index, last = index >> 1, last >> 1
        else:
            new = node_hash(new, node)
        index, last = index >> 1, last >> 1
    return (old, new) if last == 0 else (None, None)


class Fork(Exception):
    """Two checkpoints are of two histories."""


def is_one_history(small, large, proof):
    """Whether the log of the smaller checkpoint is shown to be the beginning of the larger one's (RFC 9162, section 2.1.4.2).

    Raises Fork if it is shown not to be.
    """
    if small.size == large.size and small.root != large.root or small.size == 0 and small.root != EMPTY_ROOT:
        raise Fork
    if small.size in (0, large.size) or not proof:
        return small.size in (0, large.size) and not proof
    roots, own = (small.root, large.root), lead(proof, small.size, large.size)
    granted = [small.root] if small.size & (small.size - 1) == 0 else []
    if roots in (own, lead(granted + proof, small.size, large.size)):
        return True
    if own[1] == large.root:
        raise Fork
    return False


def lead(path, size, grown):
    """The roots of both sizes that a path leads to; None, None where it has too many nodes or too few."""
    first, last = size - 1, grown - 1
    while first & 1:
        first, last = first >> 1, last >> 1
    return _climb(first, last, path[0], path[1:])


class Checkpoint:
    """The text of a checkpoint. Raises Refused for what is none."""

    def __init__(self, text):
        lines = text.split("\n")
        require(len(lines) == 4 and lines[3] == "", "a checkpoint has other than three lines")
        self.origin = lines[0]
        require(is_origin(self.origin), "no origin")
        require(bool(re.match(r"(0|[1-9][0-9]{0,18})\Z", lines[1])), "no size")
        self.size = int(lines[1])
        require(self.size < 2**53, "no size")
        self.root = unbase64(lines[2], 32, 32)


def is_origin(text):
    return text != "" and not any(ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 for char in text)


class Unsigned(Exception):
    """No log that the reader trusts signed it."""


def open_checkpoint(note, logs):
    """The checkpoint, if a trusted log signed it. Raises Unsigned, or Refused where the format says refuted."""
    text, signatures = split_note(note)
    signers = {log.name for log in logs if _signed(text, signatures, log)}
    if not signers:
        raise Unsigned("no log that is trusted signed the checkpoint")
    for _, encoded, _ in signatures:
        unbase64(encoded)
    checkpoint = Checkpoint(text)
    require(checkpoint.origin in signers, "the origin is not the name of the key")
    return checkpoint


def split_note(note):
    """The text of a signed note (C2SP signed-note), and the lines of its signatures as pairs of name and base64."""
    text, separator, tail = note.rpartition("\n\n")
    require(len(note.encode()) <= _MAX_NOTE, "a signed note that is too long")
    require(not _CONTROL.search(note), "a control character in a signed note")
    require(separator and tail.endswith("\n"), "not a signed note")
    require(tail.count("\n") <= 100, "more than 100 signatures")
    lines = [_SIGNATURE_LINE.match(line) for line in tail[:-1].split("\n")]
    require(all(lines), "not a line of a signed note")
    signatures = [(line[1], line[2], unbase64(line[2], strict=False)) for line in lines]  # strict are those of notes that a trusted log signed
    require(all(len(data) >= 5 for _, _, data in signatures), "a signature that is too short")
    return text + "\n", signatures


def mended_note(data):
    """A file as a signed note: without a byte order mark, with plain line feeds and one at the end."""
    return without_mark(data).replace(b"\r\n", b"\n").rstrip(b"\n") + b"\n"


def is_checkpoint(data):
    """Whether a file is a checkpoint by itself: a signed note, whoever signed it, whose text is that of one."""
    try:
        return len(data) <= _MAX_CHECKPOINT and bool(Checkpoint(split_note(data.decode("utf-8"))[0]))
    except (UnicodeDecodeError, Refused):
        return False


def _line_of(signatures, key):
    """What the first line in the name of a key says, after its hash; None: there is none."""
    return next((data[4:] for name, _, data in signatures if name == key.name and data[:4] == key.hash), None)


def _signed(text, signatures, log):
    """Whether a log signed a note. A signature in its name that is not valid refutes the note; the first one counts."""
    signature = _line_of(signatures, log)
    require(signature is None or keys.is_valid("Ed25519", log.spki, text.encode(), signature), "the log's signature is not valid")
    return signature is not None


def count_witnesses(note, witnesses, at):
    """How many witnesses have cosigned a checkpoint that a trusted log signed, by a moment (None: whenever). Raises Refused for one that has
    not and seems to."""
    text, signatures = split_note(note)
    times = [_cosigned(text, signatures, witness) for witness in witnesses]
    return sum(time is not None and (at is None or time <= at) for time in times)


def _cosigned(text, signatures, witness):
    """As _signed, of the line of a witness (C2SP tlog-cosignature): 8 bytes of time, and the signature over it and the text. The time is
    returned."""
    said = _line_of(signatures, witness)
    if said is None:
        return None
    require(len(said) == 8 + 64 and said[0] < 0x80, "no cosignature")
    time = int.from_bytes(said[:8], "big")
    message = f"cosignature/v1\ntime {time}\n{text}"
    require(keys.is_valid("Ed25519", witness.spki, message.encode(), said[8:]), "the witness's signature is not valid")
    return time
