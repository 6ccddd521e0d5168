"""Reviews and deliveries: guarantee human_review, section "Reviews" of docs/format.md."""

from canonical import form

_NOTHING = object()  # the output of a rejection
_UNKNOWN = object()  # a text that is withheld, or in a record that is not there


def check(opened, findings):
    """Judges every review and delivery of a file."""
    book = Book(opened.records)
    judged = [record for record in opened.records if record.action in ("human_review", "delivery")]
    if not judged:
        return
    for record in judged:
        if record.action == "delivery" and _gives_on(record, book):
            findings.ask("given_on")
            continue
        findings.ask("human_review")
        (_check_review if record.action == "human_review" else _check_delivery)(record, book, findings)
    for guarantee in {"human_review", "given_on"} & findings.asked:
        if not findings.against(guarantee) and findings.against("content", "authentication"):
            findings.doubt(guarantee, "rests")


def _gives_on(delivery, book):
    """Whether a delivery gives on, unchanged and without a person, the one record that it delivers."""
    goods = book.named(delivery)
    if book.names_missing(delivery) or any(record.action == "human_review" for record in goods):
        return False
    if "original_response_id" in delivery.payload:
        original = book.original(delivery)
    else:
        original = goods[0] if len(goods) == 1 else None
    if original is None or original.digest not in delivery.named() or _last_review(original.id, delivery, book):
        return False
    response, output = _text(delivery, "response"), book.output(original)
    return _UNKNOWN not in (response, output) and response == output


class Book:
    """The records of a file, to be looked up."""

    def __init__(self, records):
        self.records = records
        self.place = {record.digest: place for place, record in reversed(list(enumerate(records)))}
        self.by_digest = {record.digest: record for record in reversed(records)}
        self._by_id = {record.id: record for record in reversed(records)}

    def original(self, record):
        return self._by_id.get(record.get("original_response_id"))

    def named(self, record):
        """The records that a record names by digest and that are in the file, in its order."""
        found = (self.by_digest[digest] for digest in record.named() if digest in self.by_digest)
        return sorted(found, key=lambda other: self.place[other.digest])

    def names_missing(self, record):
        return any(digest not in self.by_digest for digest in record.named())

    def output(self, record):
        """What a record puts out: a text, _NOTHING or _UNKNOWN."""
        if record.action != "human_review":
            return _text(record, "response")
        status = record.get("approval_status")
        if status == "rejected":
            return _NOTHING
        if status == "approved_with_modifications":
            return _text(record, "modified_response")
        original = self.original(record)
        if original is None or self.place[original.digest] >= self.place[record.digest]:
            return _UNKNOWN
        return self.output(original)


def _text(record, member):
    if member not in record.payload:
        return _NOTHING
    shown, value = record.disclosed(member)
    return form(value) if shown else _UNKNOWN


def _check_bound(record, named, book, findings):
    """Finds the record that a review or delivery is about, and says what is wrong with how it is named.

    Gives the record with which it can be compared, if any.
    """
    original = book.original(record)
    missing = any(digest not in book.by_digest for digest in named)
    if original is not None and original.digest in named:
        return original
    if not named:
        findings.doubt("human_review", "binding", record)
        return original
    if original is not None and missing:
        findings.refute("human_review", "version", record)
    elif not missing:
        findings.refute("human_review", "original", record)
    else:
        findings.doubt("human_review", "missing", record)
    return None


def _check_review(review, book, findings):
    original = _check_bound(review, review.named(), book, findings)
    if "modified_response" in review.payload and review.get("approval_status") == "rejected":
        findings.refute("human_review", "rejection", review)
    if original is not None:
        _check_texts(review, book.output(original), findings)
        _check_against_original(review, original, findings)


def _check_texts(review, output, findings):
    status = review.get("approval_status")
    if "modified_response" not in review.payload or status == "rejected":
        return
    modified = _text(review, "modified_response")
    if _UNKNOWN in (modified, output):
        findings.doubt("human_review", "withheld", review)
    elif status == "approved" and modified != output:
        findings.refute("human_review", "approval", review)
    elif status == "approved_with_modifications" and modified == output:
        findings.refute("human_review", "modification", review)


def _check_against_original(review, original, findings):
    if review.actor == original.actor or _keys(review) & _keys(original):
        findings.refute("human_review", "own-output", review)
    other_case = "case" in review.payload and review.get("case") != original.get("case")
    other_chain = (original.is_trial_act and "chain_id" in review.payload and review.get("chain_id") != original.get("chain_id"))
    if other_case or other_chain:
        findings.refute("human_review", "case", review)


def _keys(record):
    return {signer["key_id"] for signer in record.payload["signers"]}


def _check_delivery(delivery, book, findings):
    basis = Basis(delivery, book)
    _check_delivered(delivery, basis, book, findings)
    contradict = findings.doubt if basis.missing else findings.refute
    if not all(basis.is_about(review) for review in basis.reviews):
        contradict("human_review", "delivery-review", delivery)
    elif rejection := _rejection(basis.subjects(), delivery, book):
        unsure = basis.missing or (findings.kind == "files" and rejection not in basis.reviews)
        (findings.doubt if unsure else findings.refute)("human_review", "delivery-rejected", delivery)
    elif not basis.reviews:
        findings.doubt("human_review", "unreviewed", delivery)
    elif _UNKNOWN in (texts := (_text(delivery, "response"), book.output(basis.reviews[-1]))):
        findings.doubt("human_review", "withheld", delivery)
    elif texts[0] != texts[1]:
        contradict("human_review", "delivery", delivery)


class Basis:
    """What a delivery says that it rests on."""

    def __init__(self, delivery, book):
        named = book.named(delivery)
        self.original = delivery.get("original_response_id")
        self.reviews = [record for record in named if record.action == "human_review"]
        self.delivered = delivery.named() - {review.digest for review in self.reviews}
        self.missing = book.names_missing(delivery)
        others = [record.id for record in named if record.action != "human_review"]
        self.ids = [self.original] if self.original else others

    def is_about(self, review):
        """Whether a review is of what is delivered, or of another review that is named."""
        about = review.get("original_response_id")
        return not self.ids or about in self.ids or about in [other.id for other in self.reviews if other is not review]

    def subjects(self):
        """The ids of what must not have been rejected last."""
        if not self.original and not self.reviews:
            return self.ids
        reviewed = [name for review in self.reviews for name in (review.id, review.get("original_response_id"))]
        return reviewed + [self.original]


def _check_delivered(delivery, basis, book, findings):
    """Whether a delivery names what it delivers, beside the review."""
    original = book.original(delivery)
    bound = original is not None and original.digest in basis.delivered
    if basis.missing and (basis.original is None or (not basis.reviews and not bound)):
        findings.doubt("human_review", "missing", delivery)
    elif basis.original is not None:
        _check_bound(delivery, basis.delivered, book, findings)
    elif not basis.delivered:
        findings.doubt("human_review", "binding", delivery)


def _rejection(subjects, delivery, book):
    """The rejection that is the last review of one of these records before the delivery, if any is."""
    last = [_last_review(subject, delivery, book) for subject in subjects]
    return next((review for review in last if review and review.get("approval_status") == "rejected"), None)


def _last_review(subject, delivery, book):
    """The last review of a record before the delivery, of this version of it."""
    earlier = [
        review
        for review in book.records[: book.place[delivery.digest]]
        if review.action == "human_review"
        and review.get("original_response_id") == subject
        and not _other_version(review, book)
    ]
    return earlier[-1] if earlier else None


def _other_version(review, book):
    """Whether a review is bound to another version of its original than the one in the file."""
    original = book.original(review)
    return bool(review.named()) and original is not None and original.digest not in review.named()
