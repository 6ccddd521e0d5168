"""Records linked into chains: guarantee chain, section "Chains" of docs/format.md."""

from shapes import moment

_LINKS = ("chain_id", "chain_position", "parent_request_id", "previous_agent", "next_agent", "previous_record")


def check(opened, findings):
    """Judges every linked record of a bundle that is no act of a trial."""
    judged = [record for record in opened.records if is_linked(record)]
    if not opened.is_bundle or not judged:
        return
    findings.ask("chain")
    graph = Graph(opened.records)
    _check_counts(opened.records, findings)
    for record in judged:
        _bound(record, graph, findings)
        for rule in (_position, _previous_agent, _next_agent, _time, _parent_or_cycle):
            rule(record, graph, findings)
    if not findings.against("chain") and findings.against("content", "authentication", "order"):
        findings.doubt("chain", "rests")


def is_linked(record):
    return not record.is_trial_act and any(name in record.payload for name in _LINKS)


class Graph:
    """The records of a file, who names whom, and which belong to one chain."""

    def __init__(self, records):
        self.records = records
        self.by_digest = {record.digest: record for record in records}
        self.by_request, self._parents = {}, set()
        for record in records:
            self._parents.add(record.get("parent_request_id"))
            if "request_id" in record.payload:
                self.by_request.setdefault(record.get("request_id"), []).append(record)
        self._chains = {record.digest: self._chain_of(record) for record in records}
        self._members, self.naming = {}, {}
        for record in records:
            self._members.setdefault(self._chains[record.digest], []).append(record)
            for other in self.named(record):
                self.naming.setdefault(other.digest, []).append(record)

    def named(self, record):
        """The records of the file that a record names by digest, the one before first, then in the order of saw."""
        named = [record.get("previous_record"), *record.get("saw", [])]
        return [self.by_digest[digest] for digest in dict.fromkeys(named) if digest in self.by_digest]

    def parents(self, record):
        """The records of the request that a record calls its parent, unless that is its own."""
        parent = record.get("parent_request_id")
        return [] if parent == record.get("request_id") else self.by_request.get(parent, [])

    def chain(self, record):
        """The records of the same chain, the record itself too."""
        return self._members[self._chains[record.digest]]

    def is_of_chain(self, other, record):
        return self._chains[other.digest] == self._chains[record.digest]

    def named_of_chain(self, record):
        return [other for other in self.named(record) if self.is_of_chain(other, record)]

    def at(self, record, position):
        """The others of the record's chain at a position."""
        return [other for other in self.chain(record) if other is not record and other.get("chain_position") == position]

    def _chain_of(self, record):
        """The name of a record's chain: its own, or that of the record to which it leads."""
        seen = set()
        while "chain_id" not in record.payload and (leading := self.named(record) or self.parents(record)):
            if record.digest in seen:
                return ("none", None)
            seen.add(record.digest)
            record = leading[0]
        if "chain_id" in record.payload:
            return ("chain", record.get("chain_id"))
        if "parent_request_id" in record.payload:
            return ("request", record.get("parent_request_id"))
        if "request_id" in record.payload and record.get("request_id") in self._parents:
            return ("request", record.get("request_id"))
        return ("none", None)


def _miss(findings, must, rule, record):
    """What the lack of a record comes to, or what is said of one that must name its chain; not proved of files that their reader chose."""
    (findings.refute if must and findings.kind != "files" else findings.doubt)("chain", rule, record)


def _check_counts(records, findings):
    """The counts of each chain are 1, 2, 3, …; of acts of a trial, the trial's own rules tell."""
    counts, broken = {}, set()
    for record in records:
        name = record.get("chain_id")
        if name is None or not record.log or name in broken:
            continue
        counts[name] = counts.get(name, 0) + 1
        if record.log["chain_seq"] != counts[name]:
            broken.add(name)
            if not record.is_trial_act:
                _miss(findings, True, "gap", record)


def _bound(record, graph, findings):
    """Rules dangling, gap and unbound: of the last three rows the first that fits counts."""
    position = record.get("chain_position", 0)
    if any(digest not in graph.by_digest for digest in record.get("saw", [])):
        findings.doubt("chain", "dangling", record)
    if "previous_record" in record.payload and record.get("previous_record") not in graph.by_digest:
        _miss(findings, position > 1, "dangling", record)
    elif graph.named_of_chain(record):
        return
    elif position > 1 and not graph.at(record, position - 1):
        _miss(findings, "chain_id" in record.payload, "gap", record)
    elif position > 1 or not _is_bound_otherwise(record, graph):
        findings.doubt("chain", "unbound", record)


def _is_bound_otherwise(record, graph):
    """Whether a record can be the first, or says otherwise than by its place what it follows, which is not an agent that it does not name."""
    begins = "chain_position" in record.payload or graph.chain(record)[0] is record or graph.named(record) or graph.parents(record)
    by_record = "previous_agent" not in record.payload or "previous_record" in record.payload
    return begins and (by_record or record.get("previous_agent") in [other.actor for other in graph.named(record)])


def _position(record, graph, findings):
    before = [other.get("chain_position") for other in graph.named_of_chain(record) if "chain_position" in other.payload]
    if "chain_position" in record.payload and before and record.get("chain_position") != max(before) + 1:
        findings.refute("chain", "position", record)


def _previous_agent(record, graph, findings):
    if "previous_agent" not in record.payload:
        return
    if "previous_record" in record.payload:
        previous = graph.by_digest.get(record.get("previous_record"))
        if previous is not None and previous.actor != record.get("previous_agent"):
            findings.refute("chain", "previous-agent", record)
        return
    candidates = graph.named_of_chain(record) + graph.at(record, record.get("chain_position", 0) - 1)
    if candidates and record.get("previous_agent") not in [other.actor for other in candidates]:
        _miss(findings, "chain_id" in record.payload, "previous-agent", record)


def _next_agent(record, graph, findings):
    if "next_agent" not in record.payload:
        return
    naming, after = graph.naming.get(record.digest, []), []
    if "chain_position" in record.payload:
        after = [other for other in graph.at(record, record.get("chain_position") + 1) if not graph.named_of_chain(other)]
    if record.get("next_agent") in [other.actor for other in naming + after]:
        return
    following = [other for other in naming if graph.is_of_chain(other, record)] + after
    if any(other.action not in ("human_review", "delivery") for other in following):
        _miss(findings, "chain_id" in record.payload, "next-agent", record)
    else:
        findings.doubt("chain", "next-agent", record)


def _time(record, graph, findings):
    mine = _moment(record)
    if mine is None:
        return
    if any(mine < time for other in graph.named(record) if (time := _moment(other)) is not None):
        findings.refute("chain", "time", record)
        return
    if graph.named_of_chain(record) or "chain_position" not in record.payload:
        return
    before = graph.at(record, record.get("chain_position") - 1)
    if "previous_agent" in record.payload:
        before = [other for other in before if other.actor == record.get("previous_agent")]
    times = [time for other in before if (time := _moment(other)) is not None]
    if times and mine < min(times):
        _miss(findings, "chain_id" in record.payload, "time", record)


def _moment(record):
    return moment(record.get("timestamp")) if "timestamp" in record.payload else None


def _parent_or_cycle(record, graph, findings):
    if "parent_request_id" not in record.payload:
        return
    if not graph.parents(record):
        findings.doubt("chain", "parent", record)
    elif "request_id" in record.payload and not _comes_to_a_beginning(record, graph):
        _miss(findings, True, "cycle", record)


def _comes_to_a_beginning(record, graph):
    """Whether a way leads from its request, from request to parent request by any record, to a record without a parent here."""
    seen, rest = set(), [record.get("request_id")]
    while rest:
        request = rest.pop()
        if request in seen:
            continue
        seen.add(request)
        for other in graph.by_request.get(request, []):
            if not graph.parents(other):
                return True
            rest.append(other.get("parent_request_id"))
    return False
