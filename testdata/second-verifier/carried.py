"""The proofs that records carry about hidden values: section "Carried proofs" of docs/format.md."""

import properties
import sigma
from canonical import Refused, form
from sigma import NoProof

_MAX_OF_RECORD = 512 << 10
_MAX_OPEN = 2 << 20
_MAX_COMMITMENTS = 1 << 16


class Proofs:
    """What the proofs of a file's records show."""

    def __init__(self, findings):
        self._findings = findings
        self._known, self._records, self._count, self._exceeded = {}, set(), 0, False
        self._open, self._open_size = [], 0

    def take(self, record):
        """Checks the proofs that are about one record alone, and keeps the others."""
        if record.properties:
            self._findings.ask("property")
        own = Commitments()
        own.add(record)
        if record.get("provable"):
            if self._count + len(record.get("provable")) > _MAX_COMMITMENTS:
                self._exceeded = True
            else:
                self._count += len(record.get("provable"))
                self._known.update(own.points)
                self._records.add(record.digest)
        size, later = 0, []
        for statement, proof in record.properties:
            size += len(form(statement)) + len(proof)
            if size > _MAX_OF_RECORD:
                self._findings.doubt("property", "volume", record)
                break
            self._take_one(record, statement, proof, own, later)
        for size, statement, proof in later:
            self._open_size += size
            if self._open_size > _MAX_OPEN:
                self._findings.doubt("property", "volume", record)
                break
            self._open.append((record, statement, proof))

    def _take_one(self, record, statement, proof, own, later):
        try:
            properties.check(statement)
        except (NoProof, Refused) as err:
            self._findings.doubt("property", "statement", record, str(err))
            return
        of = {member["record"] for member in statement["members"]}
        if record.digest not in of:
            self._findings.doubt("property", "record", record)
        elif of != {record.digest}:
            later.append((len(form(statement)) + len(proof), statement, proof))
        else:
            self._hold(record, statement, proof, own.points, {record.digest} if record.get("provable") else set(), False)

    def joint(self):
        """Checks what is about several records."""
        for record, statement, proof in self._open:
            self._hold(record, statement, proof, self._known, self._records, self._exceeded)

    def _hold(self, record, statement, proof, known, records, exceeded):
        points = []
        for member in statement["members"]:
            key = (member["record"], statement["kind"], member["pointer"])
            if key not in known:
                rule = "volume" if exceeded else "unprovable" if member["record"] in records else "absent"
                self._findings.doubt("property", rule, record)
                return
            points.append(sigma.point(bytes.fromhex(known[key][5:])))
        try:
            properties.verify(statement, points, proof)
        except NoProof as err:
            self._findings.refute("property", "proof", record, str(err))


class Commitments:
    def __init__(self):
        self.points = {}

    def add(self, record):
        for item in record.get("provable", []):
            self.points[record.digest, item["kind"], item["pointer"]] = item["commitment"]
