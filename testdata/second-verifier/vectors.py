#!/usr/bin/env python3
"""Runs the second verifier over vectors and compares what it finds with what the manifest says.

    python3 vectors.py MANIFEST...

prints one JSON object for each vector on a line of its own: its name, what was found, and whether that is what the manifest
says. Disagreements are said on stderr. It ends with 1 if there are any.
"""

import base64
import hashlib
import json
import sys
from pathlib import Path

sys.dont_write_bytecode = True

import bodies  # noqa: E402
import certificates  # noqa: E402
import files  # noqa: E402
import keys  # noqa: E402
import log  # noqa: E402
import payload  # noqa: E402
import properties  # noqa: E402
import revocation  # noqa: E402
import sigma  # noqa: E402
import trust as trusts  # noqa: E402
import verification  # noqa: E402
from canonical import Refused, form, parse, require, tried  # noqa: E402
from shapes import digest_of, moment  # noqa: E402

_REFUSED = {"refused": True}


def main(paths):
    disagreements = 0
    for path in paths:
        manifest = json.loads(Path(path).read_text(encoding="utf-8"))
        for kind, compare in _KINDS.items():
            for vector in _listed(manifest, kind, Path(path).parent):
                name, found, wanted = compare(vector, manifest, Path(path).parent)
                agrees = found == wanted or "unsupported" in found
                disagreements += not agrees
                print(json.dumps({"name": name, "agrees": agrees, "found": found}, ensure_ascii=False))
                if not agrees:
                    print(f"{name}:\n  found  {found}\n  wanted {wanted}", file=sys.stderr)
    return 1 if disagreements else 0


def _listed(manifest, kind, folder):
    listed = manifest.get(kind, [])
    return json.loads((folder / listed).read_text(encoding="utf-8")) if isinstance(listed, str) else listed


# Of a vector of each kind its name, what was found, and what is wanted.


def _canonical(vector, *_):
    made = tried(lambda: form(parse(base64.b64decode(vector["document"]))))
    found = {"canonical": base64.b64encode(made).decode(), "digest": digest_of(made)} if made else _REFUSED
    wanted = _REFUSED if "refused" in vector else {name: vector[name] for name in ("canonical", "digest")}
    return f"canonical: {vector['name']}", found, wanted


def _commitment(vector, *_):
    made = payload.commitment(vector["pointer"], bytes.fromhex(vector["salt"]), parse(vector["value"].encode()))
    return f"commitment: {vector['pointer']}", {"commitment": made}, {"commitment": vector["commitment"]}


def _key(vector, *_):
    return f"key: {vector['key_id']}", {"key_id": digest_of(base64.b64decode(vector["spki"]))}, {"key_id": vector["key_id"]}


def _record(vector, manifest, folder):
    spki = {key["key_id"]: base64.b64decode(key["spki"]) for key in manifest["keys"]}
    record = files.open_file((folder / vector["file"]).read_bytes()).records[0]
    record.log = vector["log_counts"]
    found = {
        "canonical": record.message.decode(),
        "digest": record.digest,
        "signatures": [signature.hex() for signature in record.signatures],
        "imprint": hashlib.sha256(b"".join(record.signatures)).hexdigest(),
        "log_entry": log.entry(record).decode(),
    }
    wanted = {name: vector[name] for name in found} | {"valid": True, "disclosed": True}
    wanted |= {name: (folder / vector[name]).read_text(encoding="utf-8") for name in ("canonical", "log_entry")}
    signed = zip(record.payload["signers"], record.signatures)
    try:
        found["valid"] = all(keys.is_valid(signer["alg"], spki[signer["key_id"]], record.message, signature) for signer, signature in signed)
        found["disclosed"] = all(payload.opens(record.payload, item) for item in record.disclosures)
    except keys.Unsupported as err:
        found = {"unsupported": str(err)}
    return f"record: {vector['name']}", found, wanted


def _act(vector, *_):
    can_be = tried(lambda: bodies.check_operators(vector["action_type"], vector["chain_id"], parse(vector["response"].encode())) or True)
    return _refusal(f"act: {vector['name']}", can_be, vector)


def _observed(vector, *_):
    return _refusal(vector["name"], payload.FORMS[vector["member"]](parse(vector["value"].encode())), vector)


def _bundle(vector, manifest, folder):
    opened = files.open_file((folder / vector["file"]).read_bytes())
    names = {item["digest"]: item["name"] for item in manifest["records"]}
    return f"bundle: {vector['name']}", {"records": [names[item.digest] for item in opened.records]}, {"records": vector["records"]}


def _property(vector, *_):
    try:
        statement = parse(vector["statement"].encode())
        require(form(statement).decode() == vector["statement"], "the statement is not in canonical form")
        point = sigma.point(bytes.fromhex(vector["commitment"].removeprefix("p256:")))
        if opening := vector.get("opening"):
            value, salt = parse(opening["value"].encode()), base64.b64decode(opening["salt"])
            made = properties.commitment(statement["kind"], statement["members"][0]["pointer"], value, salt)
            require(made == point, "another commitment")
        properties.verify(statement, point, base64.b64decode(vector["proof"]))
        found = "proved"
    except (sigma.NoProof, Refused):
        found = "refused"
    return vector["name"], {"property": found}, {"property": "refused" if vector.get("refused") else "proved"}


def _readable(vector, *_):
    reader = certificates.Certificate if vector["kind"] == "certificate" else revocation.List
    return _refusal(vector["name"], tried(reader, base64.b64decode(vector["value"])), vector)


def _refusal(name, read, vector):
    return name, {"refused": not read}, {"refused": vector.get("refused", False)}


def _trust_file(vector, _, folder):
    trust = tried(trusts.Trust, (folder / vector["file"]).read_bytes())
    wanted = _REFUSED if vector.get("refused") else {"fingerprint": vector["fingerprint"]}
    return vector["file"], {"fingerprint": trust.fingerprint} if trust else _REFUSED, wanted


def _verification(vector, _, folder):
    if "details" in vector.get("report", {}):
        vector["report"]["details"].sort(key=_text)
    return vector["name"], _verify(vector, folder), _REFUSED if vector.get("refused") else {"report": vector["report"]}


def _verify(vector, folder):
    if "policy" in vector:
        return {"unsupported": "policies"}
    try:
        trust = trusts.Trust((folder / vector["trust"]).read_bytes()) if "trust" in vector else trusts.NO_TRUST
        before, at = (moment(vector[name]) if name in vector else None for name in ("before", "at"))
        given = {name: (folder / vector[name]).read_bytes() for name in verification.GIVEN if name in vector}
        lists = [revocation.List((folder / name).read_bytes()) for name in vector.get("crls", [])]
        reader = verification.Reader(before, at, lists, vector.get("grace"), **given)
    except Refused:
        return _REFUSED
    try:
        for name in [vector["file"], *vector.get("with", [])]:
            report = verification.verify((folder / name).read_bytes(), trust, reader)
        if "with" in vector:
            [report] = reader.together.reports(trust)
    except files.NoFile:
        return _REFUSED
    except keys.Unsupported as err:
        return {"unsupported": str(err)}
    return {"report": _comparable(report, "details" in vector.get("report", {}))}


_KINDS = {
    "canonical": _canonical, "commitments": _commitment, "keys": _key, "records": _record, "acts": _act, "observed": _observed, "bundles": _bundle,
    "properties": _property, "readable": _readable, "trust_files": _trust_file, "verifications": _verification,
}


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
