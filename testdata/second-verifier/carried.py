"""The proofs that records carry about hidden values: section "Carried proofs" of docs/format.md."""

import properties
import sigma
from canonical import Refused, form
from sigma import NoProof

_MAX_OF_RECORD = 512 << 10


def check(record, findings):
    """Checks the proofs that a record carries."""
    if record.properties:
        findings.ask("property")
    size = 0
    for statement, proof in record.properties:
        size += len(form(statement)) + len(proof)
        if size > _MAX_OF_RECORD:
            findings.doubt("property", "volume", record)
            break
        _check_one(record, statement, proof, findings)


def _check_one(record, statement, proof, findings):
    try:
        properties.check(statement)
    except (NoProof, Refused) as err:
        findings.doubt("property", "statement", record, str(err))
        return
    [member] = statement["members"]
    if member["record"] != record.digest:
        findings.doubt("property", "record", record)
        return
    sought = (statement["kind"], member["pointer"])
    found = [item["commitment"] for item in record.get("provable", []) if (item["kind"], item["pointer"]) == sought]
    if not found:
        findings.doubt("property", "unprovable", record)
        return
    try:
        properties.verify(statement, sigma.point(bytes.fromhex(found[0][5:])), proof)
    except NoProof as err:
        findings.refute("property", "proof", record, str(err))
