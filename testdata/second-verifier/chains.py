"""Records linked into chains: guarantee chain, section "Chains" of docs/format.md."""

from shapes import moment

_LINKS = ("chain_id", "chain_position", "parent_request_id", "previous_agent", "next_agent", "previous_record")


def check(opened, findings):
    """Judges every linked record of a bundle that is no act of a trial."""
    judged = [
        record for record in opened.records if not record.is_trial_act and any(name in record.payload for name in _LINKS)
    ]
    if not opened.is_bundle or not judged:
        return
    findings.ask("chain")
    graph = Graph(opened.records)
    _check_counts(opened.records, judged, findings)
    for record in judged:
        for rule in (_gap, _position, _dangling, _unbound, _previous_agent, _next_agent, _time, _parent, _cycle):
            rule(record, graph, findings)
    if not findings.against("chain") and findings.against("content", "authentication", "order"):
        findings.doubt("chain", "rests")


class Graph:
    """The records of a file, who names whom, and which belong to one chain."""

    def __init__(self, records):
        self.records = records
        self.by_digest = {record.digest: record for record in reversed(records)}
        self._by_request = {}
        for record in records:
            self._by_request.setdefault(record.get("request_id"), []).append(record)
        self._chains = self._grouped()

    def named(self, record):
        """The records of the file that a record names by digest, in the order of the file."""
        named = record.named()
        return [other for other in self.records if other.digest in named and other is not record]

    def requested(self, request_id):
        """The records with a request id, in the order of the file."""
        return self._by_request.get(request_id, []) if request_id is not None else []

    def chain(self, record):
        """The records of the same chain, the record itself too."""
        name = self._chains[record.digest]
        return [other for other in self.records if self._chains[other.digest] == name]

    def named_of_chain(self, record):
        mine = self._chains[record.digest]
        return [other for other in self.named(record) if self._chains[other.digest] == mine]

    def at(self, record, position):
        """The others of the record's chain at a position."""
        return [other for other in self.chain(record) if other is not record and other.get("chain_position") == position]

    def _grouped(self):
        """The name of each record's chain."""
        leaders = {record.digest: self._leader(record) for record in self.records}
        return {record.digest: self._followed(record, leaders) for record in self.records}

    def _leader(self, record):
        """The record whose chain a record without chain_id is of, if anything says so."""
        if "chain_id" in record.payload:
            return None
        if named := self.named(record):
            return named[0]
        parents = [other for other in self.requested(record.get("parent_request_id")) if other is not record]
        return parents[0] if parents else None

    def _followed(self, record, leaders):
        seen = set()
        while (leader := leaders[record.digest]) is not None and record.digest not in seen:
            seen.add(record.digest)
            record = leader
        if "chain_id" in record.payload:
            return ("chain", record.get("chain_id"))
        return ("request", record.get("parent_request_id"))


def _answer(findings, refutes, rule, record):
    (findings.refute if refutes else findings.doubt)("chain", rule, record)


def _check_counts(records, judged, findings):
    """Rule gap, first half: the counts of each chain are 1, 2, 3, …"""
    for name in {record.get("chain_id"): None for record in judged if "chain_id" in record.payload}:
        logged = [record for record in records if record.get("chain_id") == name and record.log]
        for place, record in enumerate(logged, 1):
            if record.log["chain_seq"] != place:
                findings.refute("chain", "gap", record)
                break


def _gap(record, graph, findings):
    position = record.get("chain_position", 1)
    if position > 1 and not graph.named_of_chain(record) and not graph.at(record, position - 1):
        _answer(findings, "chain_id" in record.payload, "gap", record)


def _position(record, graph, findings):
    before = [other.get("chain_position") for other in graph.named_of_chain(record) if "chain_position" in other.payload]
    if "chain_position" in record.payload and before and record.get("chain_position") != max(before) + 1:
        findings.refute("chain", "position", record)


def _dangling(record, graph, findings):
    if "previous_record" in record.payload and record.get("previous_record") not in graph.by_digest:
        _answer(findings, record.get("chain_position", 1) > 1, "dangling", record)
    if any(digest not in graph.by_digest for digest in record.get("saw", [])):
        findings.doubt("chain", "dangling", record)


def _unbound(record, graph, findings):
    bound = graph.named_of_chain(record)
    first = graph.chain(record)[0] is record
    if "chain_position" in record.payload:
        loose = not bound and record.get("chain_position") > 1
    else:
        loose = not first and not graph.named(record) and not graph.requested(record.get("parent_request_id"))
    names_agent = "previous_agent" in record.payload and "previous_record" not in record.payload
    if names_agent and record.get("previous_agent") not in [other.actor for other in graph.named(record)]:
        loose = True
    if loose:
        findings.doubt("chain", "unbound", record)


def _previous_agent(record, graph, findings):
    if "previous_agent" not in record.payload:
        return
    if "previous_record" in record.payload:
        previous = graph.by_digest.get(record.get("previous_record"))
        if previous is not None and previous.actor != record.get("previous_agent"):
            findings.refute("chain", "previous-agent", record)
        return
    named = graph.named_of_chain(record)
    before = graph.at(record, record.get("chain_position", 0) - 1)
    candidates = named + before
    if candidates and record.get("previous_agent") not in [other.actor for other in candidates]:
        _answer(findings, bool(named) or "chain_id" in record.payload, "previous-agent", record)


def _next_agent(record, graph, findings):
    if "next_agent" not in record.payload:
        return
    following = [other for other in graph.chain(record) if _follows(other, record, graph)]
    if record.get("next_agent") in [other.actor for other in following]:
        return
    acts = [other for other in following if other.action not in ("human_review", "delivery")]
    _answer(findings, bool(acts) and "chain_id" in record.payload, "next-agent", record)


def _follows(other, record, graph):
    if record.digest in other.named():
        return True
    if "chain_position" not in record.payload or other is record:
        return False
    return other.get("chain_position") == record.get("chain_position") + 1 and not graph.named_of_chain(other)


def _time(record, graph, findings):
    mine = _moment(record)
    if mine is None:
        return
    if any(mine < time for other in graph.named(record) if (time := _moment(other)) is not None):
        findings.refute("chain", "time", record)
    if graph.named_of_chain(record) or "chain_position" not in record.payload:
        return
    before = graph.at(record, record.get("chain_position") - 1)
    if "previous_agent" in record.payload:
        before = [other for other in before if other.actor == record.get("previous_agent")]
    times = [time for other in before if (time := _moment(other)) is not None]
    if times and mine < min(times):
        _answer(findings, "chain_id" in record.payload, "time", record)


def _moment(record):
    return moment(record.get("timestamp")) if "timestamp" in record.payload else None


def _parent(record, graph, findings):
    parent = record.get("parent_request_id")
    if parent is not None and (parent == record.get("request_id") or not graph.requested(parent)):
        findings.doubt("chain", "parent", record)


def _cycle(record, graph, findings):
    """From some request no way leads to a parent that is not in the file, or to a record without a parent."""
    parent = record.get("parent_request_id")
    if parent is None or parent == record.get("request_id"):
        return
    seen, rest = set(), [parent]
    while rest:
        request = rest.pop()
        if request in seen:
            continue
        seen.add(request)
        records = graph.requested(request)
        if not records or any("parent_request_id" not in other.payload for other in records):
            return
        rest.extend(other.get("parent_request_id") for other in records)
    findings.refute("chain", "cycle", record)
