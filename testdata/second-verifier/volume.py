"""How much of what records say of each other is looked at: paragraph "Volume" of docs/format.md."""

import chains
import configuration
import report

_LINKS_OF_RECORD = 64
_LINKS = 1_048_576
_TEXTS = 134_217_728


def is_exceeded(records):
    """Whether the records of a bundle name more, or their acts of a trial say more, than is looked at."""
    links = sum(max(0, _links(record) - _LINKS_OF_RECORD) for record in records)
    return links > _LINKS or sum(len(record.message) for record in records if record.is_trial_act) > _TEXTS


def _links(record):
    return len(record.get("saw", [])) + (record.get("previous_record") is not None)


def doubt(records, findings):
    """Leaves open all that rests on what the records say of each other."""
    if any(map(configuration.is_asked, records)):
        findings.ask("configuration")
    if any(map(chains.is_linked, records)):
        findings.ask("chain")
    if any(record.action in ("human_review", "delivery") for record in records):
        findings.ask("human_review")
    for guarantee in ("configuration", "order", "chain", "human_review", *report.TRIAL):
        if guarantee in findings.asked:
            findings.doubt(guarantee, "volume")
