"""Calls of Responses: section "openai.responses" of docs/readings.md."""

import addresses
import inclear
import saidchat
import streams
from lenient import ANY, ARGUMENTS, TEXT, WHOLE, Broken, Form, Maybe, Node, Reader, compact, elements, first, member, quoted, string, there, together, word, written
from spoken import Answer, Message, Turn, function, inline, text_part, unknown

_ITEM = Form(
    {
        "type": TEXT,
        "id": TEXT,
        "role": TEXT,
        "content": saidchat.CONTENT,
        "call_id": TEXT,
        "name": TEXT,
        "arguments": ARGUMENTS,
        "input": TEXT,
        "output": ANY,
        "summary": Maybe([saidchat.PART]),
    },
    rest=True,
)
_ANSWER = Form(
    {
        "id": TEXT,
        "status": TEXT,
        "model": TEXT,
        "output": [_ITEM],
        "incomplete_details": Form({"reason": TEXT}),
        "error": Form({"code": TEXT, "message": TEXT}),
        "usage": ANY,
    }
)
_EVENT = Form(
    {
        "type": TEXT,
        "response": Maybe(_ANSWER),
        "output_index": WHOLE,
        "content_index": WHOLE,
        "item": Maybe(_ITEM),
        "delta": ANY,
    }
)
_OF_THE_AGENT = ("function", "custom", "local_shell", "apply_patch", "computer_use_preview", "computer")


def read(reading):
    last = saidchat.path_of(reading.call.path).rpartition("/")[2]
    if not reading.call.request and last != "responses":
        reading.refer("response", last)
    else:
        request = reading.request()
        if request is not None:
            _request(reading, request)
    answer, in_one_piece = streams.answered(reading, _ANSWER, _Stream)
    if answer is None:
        return
    reading.said["model_version"] = answer["model"]
    reading.usage(answer["usage"])
    if in_one_piece and not answer["status"] and not answer["error"]["message"]:
        return
    turn = Turn("assistant")
    for item in answer["output"]:
        _item(reading, turn, item, True)
    reading.answers.append(Answer(0, turn.end()))


def _request(reading, request):
    reading.said["model"] = word(request.get("model"))
    more = []
    for name, role in (("instructions", "system"), ("input", "user")):
        node = request.get(name)
        if node is None:
            continue
        if node.kind == "string":
            reading.prompt = (reading.prompt or []) + [Message(role, [text_part(node.value)])]
            continue
        turn = Turn(role)
        for item in reading.conversation(request, name, [_ITEM]):
            if item["type"] == "additional_tools":
                more += reading.objects(dict(item["rest"]), "tools")
            else:
                _item(reading, turn, item, False)
        if turn.said:
            reading.prompt += turn.end()
    reading.refer("previous_response_id", word(request.get("previous_response_id")))
    reading.refer("conversation", first(word(request.get("conversation")), word(member(request.get("conversation"), "id"))))
    reading.refer("prompt", word(member(request.get("prompt"), "id")))
    if request.get("background") is not None and request["background"].kind == "true":
        reading.refer("background", "true")
    if "tools" in request or more:
        reading.named["tools"] = inclear.names(_tools(reading, reading.objects(request, "tools") + more))
    reading.parameters(request)


def _tools(reading, tools):
    names = []
    for tool in tools:
        kind, inner = word(tool.get("type")), tool.get("tools")
        if kind == "namespace" and inner is not None and inner.kind == "array":
            names += [word(tool.get("name")) + "." + word(member(node, "name")) for node in inner.value]
            continue
        label = word(tool.get("server_label"))
        names.append(first(word(tool.get("name")), label, kind))
        if kind in _OF_THE_AGENT:
            continue
        if kind == "mcp":
            address = word(tool.get("server_url"))
            reading.refer("mcp", first(addresses.clean(address) if address else "", word(tool.get("connector_id")), label))
            continue
        reading.refer("tool", kind)
        for its_id in reading.texts(tool.get("vector_store_ids")):
            reading.refer("vector_store", its_id)
        reading.refer("container", word(tool.get("container")))
        for node in elements(member(tool.get("container"), "file_ids")):
            reading.refer("file", word(node))
    return names


def _item(reading, turn, item, is_answer):
    turn.open = False
    kind, own = item["type"], dict(item["rest"])
    if kind in ("", "message"):
        role = turn.role if is_answer else item["role"] or turn.role
        turn.said.append(Message(role, saidchat.parts(reading, item["content"])))
    elif kind in ("reasoning", "compaction"):
        return
    elif kind == "item_reference":
        reading.refer("item", item["id"])
    elif kind.endswith("_output"):
        returned = next((node for node in (item["output"], own.get("result"), own.get("tools")) if there(node)), None)
        its_id = item["call_id"] or item["id"]
        turn.result(output_of(reading, returned), call_id=reading.called.get(its_id, its_id))
    elif kind.endswith("_call") or kind == "program":
        _call(reading, turn, item, own)
    else:
        turn.said.append(Message(turn.role, [unknown(kind, _whole(item))]))


def _whole(item):
    """An item of an unknown kind, put together."""
    own = [("type", string(item["type"]))] if item["type"] else []
    own += [(name, string(item[name])) for name in ("id", "role", "call_id", "name", "arguments", "input") if item[name]]
    if item["output"] is not None:
        own.append(("output", item["output"]))
    for name, shown in (("content", item["content"]), ("summary", item["summary"])):
        if isinstance(shown, str) and shown:
            own.append((name, string(shown)))
        elif isinstance(shown, list):
            own.append((name, Node("array", [], b"[" + b",".join(map(_part, shown)) + b"]")))
    own += item["rest"]
    return Node("object", own, together(own))


def _part(part):
    own = [("type", string(part["type"]))] + [(name, string(part[name])) for name in ("text", "refusal") if part[name]]
    return b"{" + b",".join(quoted(name) + b":" + compact(node.raw) for name, node in own + part["rest"]) + b"}"


def _call(reading, turn, item, own):
    kind, its_id = item["type"], item["call_id"] or item["id"]
    name = item["name"] or kind.removesuffix("_call")
    if item["call_id"] and item["id"]:
        reading.called.setdefault(item["id"], item["call_id"])
        reading.called[item["call_id"]] = item["call_id"]
    said = Message("assistant")
    if kind == "custom_tool_call":
        said.calls = [{"id": its_id, "type": "custom"} | ({"custom": {"name": name, "input": item["input"]}} if name or item["input"] else {})]
    else:
        arguments = item["arguments"]
        for other in ("action", "actions", "queries", "code", "operation"):
            arguments = arguments or first(word(own.get(other)), written(own.get(other)))
        said.calls = [function(its_id, name, arguments)]
    turn.said.append(said)
    if kind == "image_generation_call":
        if word(own.get("result")):
            turn.result([inline("image_url", "", "", word(own["result"]))], call_id=its_id)
        return
    for node in (item["output"], own.get("outputs"), own.get("results"), own.get("result"), own.get("error")):
        if there(node):
            turn.result(output_of(reading, node), call_id=its_id, is_error=there(own.get("error")))
            return


def output_of(reading, node):
    """What a tool returned: a text, parts, or another value."""
    if not there(node):
        return []
    try:
        content = Reader().read(saidchat.CONTENT, node)
    except Broken:
        return [text_part(written(node))]
    if not isinstance(content, str) and not all(part["type"].startswith("input_") or part["type"].endswith("text") for part in content):
        return [text_part(written(node))]
    return saidchat.parts(reading, content)


class _Item:
    def __init__(self):
        self.own, self.parts = _ITEM.empty(), streams.Numbered(lambda: {"output_text": "", "refusal": ""})
        self.pieces = {"arguments": "", "input": ""}

    def whole(self):
        own = dict(self.own)
        if self.parts:
            if not own["type"]:
                own["type"], own["role"] = "message", "assistant"
            own["content"] = [_said(kind, text) for _, part in self.parts.all() for kind, text in part.items() if text]
        return own | {name: text for name, text in self.pieces.items() if text}


def _said(kind, text):
    return saidchat.PART.empty() | {"type": kind, "text" if kind == "output_text" else kind: text}


_LAST = tuple("response." + word for word in ("completed", "incomplete", "failed", "cancelled", "done"))
_BEGUN = tuple("response." + word for word in ("created", "queued", "in_progress"))
_PIECES = {
    "response.output_text.delta": "output_text",
    "response.refusal.delta": "refusal",
    "response.function_call_arguments.delta": "arguments",
    "response.mcp_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "input",
}


class _Stream:
    def __init__(self, reader):
        self.reader, self.begun, self.last = reader, _ANSWER.empty(), None
        self.items = streams.Numbered(_Item)

    def read(self, data):
        for _, event in streams.answer_events(data):
            if event == streams.DONE:
                return
            found = self.reader.bytes(_EVENT, event)
            if found["type"] in _LAST:
                if found["response"] is None:
                    raise Broken("no response")
                self.last = found["response"]
                return
            if found["type"] == "error":
                return
            self._add(found)

    def _add(self, event):
        kind = event["type"]
        if kind in _BEGUN:
            self.begun = self.begun if event["response"] is None else event["response"]
        elif kind in ("response.output_item.added", "response.output_item.done"):
            item = self.items.at(event["output_index"])
            item.own = item.own if event["item"] is None else event["item"]
        elif kind in _PIECES:
            if event["delta"] is None:
                raise Broken("no delta")
            text, name = self.reader.read(TEXT, event["delta"]), _PIECES[kind]
            item = self.items.at(event["output_index"])
            if name in item.pieces:
                item.pieces[name] += text
            else:
                item.parts.at(event["content_index"])[name] += text

    def answer(self):
        items = [item.whole() for _, item in self.items.all()]
        if self.last is None:
            return self.begun | {"output": items}
        return self.last if self.last["output"] else self.last | {"output": items}

