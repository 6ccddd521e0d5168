"""What jurors quote from the evidence: section "Quotations" of docs/format.md."""

import bodies
from canonical import form

BOUND = 1 << 32


def check(acts, findings):
    """Refutes the verdict by the first quotation that is shown as standing in a message, and does not."""
    shown, evidence = acts[0].disclosed("response")
    shown = shown and not any(pointer.startswith("/response/") for pointer in acts[0].payload.get("sealed_apart", []))
    messages = _messages(evidence) if shown else None
    if messages is None:
        return
    known, searched = {}, 0
    for act in acts:
        for message, quote in _quotations(act):
            if (message, quote) in known:
                stands = known[message, quote]
            elif message > len(messages):
                stands = False
            else:
                searched += len(messages[message - 1][0].encode())
                if searched > BOUND:
                    findings.doubt("verdict", "quotation")
                    return
                stands = known[message, quote] = _holds(messages[message - 1], quote)
            if not stands:
                findings.refute("verdict", "quotation", act)
                return


def _quotations(act):
    """The quotations of an answer that are not marked: those of its findings, then those of its tables."""
    body = act.payload["response"]
    opinion = body["updatedEvaluation"] if act.action == "statement" else body
    if act.action not in ("evaluation", "statement", "judge_opinion") or opinion is None:
        return []
    passages = opinion["findings"] + (bodies.passages(opinion["work"]) if "work" in opinion else [])
    return [(int(item["message"]), item["quote"]) for item in passages if "unfounded" not in item]


def _messages(evidence):
    """The messages as (canonical form, texts); None if the conversation is no array of chat messages."""
    conversation = evidence.get("conversation") if isinstance(evidence, dict) else None
    if not isinstance(conversation, list):
        return None
    if not all(isinstance(item, dict) and ("parts" not in item or "content" in item) for item in conversation):
        return None
    return [(form(item).decode(), list(_texts(item))) for item in conversation]


def _texts(value):
    """Every string in a value, and the value of each member type in brackets."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _texts(item)
            if name == "type" and isinstance(item, str):
                yield f"[{item}]"


def _holds(message, quote):
    return all(any(line in text for text in (message[0], *message[1])) for line in quote.split("\n"))
