"""What files of one log say together: section "Files given together" of docs/format.md."""

from collections import Counter

import assurance
import chains
import files
import report
import reviews
import tags

_ASKED = ("content", "authentication", "order", "chain", "human_review", "given_on")


class Together:
    """Gathers files against whose order nothing was found, for each log by itself."""

    def __init__(self):
        self._logs = {}

    def take(self, opened, findings):
        if findings.log is not None and opened.records and not findings.against("order"):
            self._logs.setdefault(findings.log.origin, []).append((opened, findings))

    def reports(self, trust, need=None):
        """A report for each log of which there are several files that say something of each other; of all else each file has its own answer."""
        need = need and assurance.Need(need.level, require_=[guarantee for guarantee in need.require if guarantee in _ASKED])
        for origin in sorted(self._logs):
            if len(self._logs[origin]) > 1 and (found := _judge(self._logs[origin])):
                yield found.report(trust, need)


def _judge(given):
    findings = report.Findings("files", ("content", "authentication", "order"))
    findings.log = max((each.log for _, each in given), key=lambda log: log.size)
    by_place = {}
    sizes = Counter(size for size, _ in {(each.log.size, each.log.root) for _, each in given})
    for _ in filter(lambda roots: roots > 1, sizes.values()):
        findings.refute("order", "fork")
    for opened, each in given:
        for record in opened.records:
            _add(record, by_place, findings)
    records = [by_place[place] for place in sorted(by_place)]
    findings.records = len(records)
    _carry_over([each for _, each in given], records, findings)
    _check_twins(records, findings)
    linked = any(map(chains.is_linked, records)) or any(record.action in ("human_review", "delivery") for record in records)
    if not linked and not findings.against("order"):
        return None
    together = files.File(True, records, None, [])
    tags.check(together, findings)
    reviews.check(together, findings)
    chains.check(together, findings)
    return findings


def _carry_over(found, records, findings):
    """What was found in any file against content and authentication, in the order of the records."""
    place = {record.id: place for place, record in enumerate(records)}
    carried = []
    for item in (item for each in found for item in each.details):
        if item["guarantee"] in ("content", "authentication") and item not in carried:
            carried.append(item)
    carried.sort(key=lambda item: (place.get(item.get("record"), 0), item["guarantee"], item["rule"]))
    findings.details += carried


def _add(record, by_place, findings):
    known = by_place.setdefault(int(record.log["index"]), record)
    if known.digest != record.digest:
        findings.refute("order", "fork", record)
    elif known is not record:
        shown = {item["pointer"] for item in known.disclosures}
        known.disclosures += [item for item in record.disclosures if item["pointer"] not in shown]


def _check_twins(records, findings):
    ids = set()
    for record in records:
        if record.id in ids:
            findings.refute("order", "twin", record)
        ids.add(record.id)
