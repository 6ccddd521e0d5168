#!/usr/bin/env python3
"""Runs the second verifier over vectors and compares what it finds with what the manifest says.

    python3 vectors.py MANIFEST...

prints one JSON object for each vector on a line of its own: its name, what was found, and whether that is what the manifest
says. Disagreements are said on stderr. It ends with 1 if there are any.
"""

import base64
import json
import sys
from pathlib import Path

sys.dont_write_bytecode = True

import certificates  # noqa: E402
import knownlog  # noqa: E402
import properties  # noqa: E402
import revocation  # noqa: E402
import sealing  # noqa: E402
import together  # noqa: E402
import trust as trusts  # noqa: E402
import verification  # noqa: E402
from canonical import Refused  # noqa: E402
from files import NoFile  # noqa: E402
from keys import Unsupported  # noqa: E402
from shapes import moment  # noqa: E402


def main(paths):
    disagreements = 0
    for path in paths:
        for name, found, wanted in _compare(Path(path)):
            agrees = found == wanted or "unsupported" in found
            disagreements += not agrees
            print(json.dumps({"name": name, "agrees": agrees, "found": found}, ensure_ascii=False))
            if not agrees:
                print(f"{name}:\n  found  {found}\n  wanted {wanted}", file=sys.stderr)
    return 1 if disagreements else 0


def _compare(path):
    """For each vector of a manifest its name, what was found, and what is wanted."""
    manifest = json.loads(path.read_text(encoding="utf-8"))
    yield from sealing.compare(manifest, path.parent)
    yield from properties.compare(manifest)
    for vector in manifest.get("readable", []):
        can_be_read = _can_be_read(vector["kind"], base64.b64decode(vector["value"]))
        yield vector["name"], {"refused": not can_be_read}, {"refused": vector.get("refused", False)}
    for vector in manifest.get("trust_files", []):
        wanted = {"refused": True} if vector.get("refused") else {"fingerprint": vector["fingerprint"]}
        yield vector["file"], _trust(path.parent / vector["file"]), wanted
    for vector in manifest.get("verifications", []):
        if "details" in vector.get("report", {}):
            vector["report"]["details"].sort(key=_text)
        wanted = {"refused": True} if vector.get("refused") else {"report": vector["report"]}
        yield vector["name"], _verify(vector, path.parent), wanted


def _can_be_read(kind, value):
    try:
        return bool(certificates.Certificate(value) if kind == "certificate" else revocation.List(value))
    except Refused:
        return False


def _trust(path):
    try:
        return {"fingerprint": trusts.Trust(path.read_bytes()).fingerprint}
    except Refused:
        return {"refused": True}


def _verify(vector, folder):
    if "policy" in vector:
        return {"unsupported": "policies"}
    try:
        trust = trusts.Trust((folder / vector["trust"]).read_bytes()) if "trust" in vector else trusts.NoTrust
        reader = _reader(vector, folder)
    except Refused:
        return {"refused": True}
    try:
        for name in [vector["file"], *vector.get("with", [])]:
            report = verification.verify((folder / name).read_bytes(), trust, reader)
        if "with" in vector:
            [report] = reader.together.reports(trust)
    except NoFile:
        return {"refused": True}
    except Unsupported as err:
        return {"unsupported": str(err)}
    return {"report": _comparable(report, "details" in vector.get("report", {}))}


def _reader(vector, folder):
    before, at = (moment(vector[name]) if name in vector else None for name in ("before", "at"))
    given = {name: (folder / vector[name]).read_bytes() for name in ("checkpoint", "consistency", "entries") if name in vector}
    checkpoint = knownlog.read_checkpoint(given["checkpoint"]) if "checkpoint" in given else None
    consistency = knownlog.Consistency(given["consistency"]) if "consistency" in given else None
    lists = [revocation.List((folder / name).read_bytes()) for name in vector.get("crls", [])]
    return verification.Reader(before, at, checkpoint, consistency, given.get("entries"), together.Together(), lists, vector.get("grace"))


def _comparable(report, with_details):
    """What two verifiers must agree on in a report: all of it but the words. Details are compared where they are given."""
    kept = {name: report[name] for name in ("kind", "records", "mended", "trust", "log", "outcome", "times", "trial_outcome") if name in report}
    lists = ("guarantees", "details") if with_details else ("guarantees",)
    wordless = {name: [{key: item[key] for key in item if key != "reason"} for item in report[name]] for name in lists}
    if with_details:
        wordless["details"].sort(key=_text)
    return kept | wordless


def _text(finding):
    return json.dumps(finding, sort_keys=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
