"""Calls of Messages: section "anthropic.messages" of docs/readings.md."""

import re
import urllib.parse

import addresses
import inclear
import streams
from lenient import (
    ANY,
    TEXT,
    TRUTH,
    WHOLE,
    Broken,
    Form,
    Maybe,
    Node,
    Reader,
    brief,
    first,
    is_json,
    member,
    parse,
    string,
    there,
    together,
    word,
    written,
)
from saidchat import path_of
from spoken import Answer, Turn, at, file, function, inline, text_part, unknown

_BLOCK = Form(
    {
        "type": TEXT,
        "text": TEXT,
        "thinking": TEXT,
        "signature": TEXT,
        "id": TEXT,
        "name": TEXT,
        "tool_use_id": TEXT,
        "input": ANY,
        "content": ANY,
        "is_error": TRUTH,
    },
    rest=True,
)


class _Blocks:
    """A text, or an array of blocks."""

    def empty(self):
        return []

    def read(self, reader, node):
        if node.kind == "string":
            return [_BLOCK.empty() | {"type": "text", "text": node.value}]
        return reader.read([_BLOCK], node)


_ANSWER = Form(
    {
        "id": TEXT,
        "type": TEXT,
        "model": TEXT,
        "content": [_BLOCK],
        "stop_reason": TEXT,
        "stop_details": Form({"category": TEXT, "explanation": TEXT}),
        "usage": ANY,
    }
)
_DELTA = Form({name: TEXT for name in ("text", "thinking", "signature", "partial_json", "stop_reason")})
_EVENT = Form(
    {"type": TEXT, "index": WHOLE, "message": Maybe(_ANSWER), "content_block": Maybe(_BLOCK), "delta": _DELTA, "usage": ANY}
)
_JOINED = ("text", "thinking", "signature")
_LABEL = "x-anthropic-billing-header"
_PAIRS = re.compile(r" ?(?:[a-z][a-z0-9_]*=[!-:<-~]*;(?: |\Z))+\Z")
_MAX_LABEL = 512
_OF_THE_AGENT = ("custom", "bash_", "text_editor_", "computer_", "memory_")
_PLAIN = ("text", "image", "document")


def read(reading):
    request = reading.request()
    if request is not None:
        _request(reading, request)
    answer, in_one_piece = streams.answered(reading, _ANSWER, _Stream)
    if answer is None:
        return
    reading.said["model_version"] = answer["model"]
    reading.usage(answer["usage"])
    if answer["type"] == "error" or in_one_piece and answer["type"] != "message":
        return
    reading.answers.append(Answer(0, _turn(reading, "assistant", answer["content"])))


def _request(reading, request):
    reading.said["model"] = first(word(request.get("model")), _hosted(reading.call.path))
    system = _without_label(_system(reading, request))
    turns = _turn(reading, "system", system)
    reading.prompt = turns or None
    for one in reading.conversation(request, "messages", [Form({"role": TEXT, "content": _Blocks()})]):
        reading.prompt += _turn(reading, one["role"], one["content"])
    for server in reading.objects(request, "mcp_servers"):
        address = word(server.get("url"))
        reading.refer("mcp", addresses.clean(address) if address else word(server.get("name")))
    reading.refer("container", first(word(request.get("container")), word(member(request.get("container"), "id"))))
    for edit in reading.objects(request.get("context_management"), "edits"):
        reading.refer("context_management", word(edit.get("type")))
    if "tools" in request:
        reading.named["tools"] = inclear.names(_tools(reading, request))
    reading.parameters(request)


def _system(reading, request):
    if not there(request.get("system")):
        return []
    try:
        return reading.reader.read(_Blocks(), request["system"])
    except Broken:
        return []


def _without_label(blocks):
    """The blocks without the label with which they may begin."""
    if not blocks or blocks[0]["type"] != "text" or not blocks[0]["text"].startswith(_LABEL + ":"):
        return blocks
    line, _, rest = blocks[0]["text"].partition("\n")
    said = line[len(_LABEL) + 1 :]
    if len(line.encode("utf-8")) >= _MAX_LABEL or not _PAIRS.match(said):
        return blocks
    return ([blocks[0] | {"text": rest}] if rest else []) + blocks[1:]


def _hosted(path):
    before, _, last = path_of(path).rpartition("/")
    name, _, verb = last.partition(":")
    model = ""
    if verb in ("rawPredict", "streamRawPredict"):
        model = name
    elif last == "invoke":
        model = before.rpartition("/")[2]
    if re.search(r"%(?![0-9a-fA-F]{2})", model):
        return model
    try:
        return urllib.parse.unquote_to_bytes(model).decode("utf-8")
    except UnicodeDecodeError:  # it is no name
        return ""


def _tools(reading, request):
    names = []
    for tool in reading.objects(request, "tools"):
        kind = word(tool.get("type"))
        names.append(first(word(tool.get("name")), word(tool.get("mcp_server_name")), kind))
        if not kind.startswith(_OF_THE_AGENT):
            reading.refer("tool", kind)
    return names


def _turn(reading, role, blocks):
    turn = Turn(role)
    for block in blocks:
        kind = block["type"]
        if kind in ("thinking", "redacted_thinking", "compaction"):
            continue
        if kind.endswith("tool_use"):
            turn.call(function(block["id"], block["name"], block.get("partial") or written(block["input"])))
        elif kind.endswith("tool_result"):
            failed = block["is_error"] or word(member(block["content"], "type")).endswith("_error")
            turn.result(_returned(reading, block["content"]), call_id=block["tool_use_id"], is_error=failed)
        elif kind != "text" or block["text"] or role != "assistant":
            turn.say(_block(reading, block))
    return turn.end()


def _block(reading, block):
    kind, own = block["type"], dict(block["rest"])
    if kind == "text":
        return text_part(block["text"])
    if kind == "image":
        return _source(reading, "image_url", "", own.get("source"))
    if kind == "document":
        return _source(reading, "file", brief(word(own.get("title"))), own.get("source"))
    if kind == "container_upload":
        return file(reading, "file", "", word(own.get("file_id")))
    return unknown(kind, _whole(block))


def _whole(block):
    """A block of an unknown kind, put together."""
    own = [("type", string(block["type"]))]
    own += [(name, string(block[name])) for name in ("text", "thinking", "signature", "id", "name", "tool_use_id") if block[name]]
    own += [(name, block[name]) for name in ("input", "content") if block[name] is not None]
    own += [("is_error", Node("true", None, b"true"))] if block["is_error"] else []
    own += block["rest"]
    return Node("object", own, together(own))


def _source(reading, kind, name, node):
    its = word(member(node, "type"))
    if its == "text":
        return text_part(word(member(node, "data")))
    if its == "base64":
        return inline(kind, name, word(member(node, "media_type")), word(member(node, "data")))
    if its == "url":
        return at(reading, kind, name, word(member(node, "url")))
    if its == "file":
        return file(reading, kind, name, word(member(node, "file_id")))
    return unknown(kind, node)


def _returned(reading, node):
    """What a tool returned: a text, blocks, or another value."""
    if not there(node):
        return []
    try:
        blocks = Reader().read(_Blocks(), node)
    except Broken:
        return [text_part(written(node))]
    if not all(block["type"] in _PLAIN for block in blocks):
        return [text_part(written(node))]
    return [_block(reading, block) for block in blocks]


class _Block:
    def __init__(self):
        self.begin(_BLOCK.empty())

    def begin(self, own):
        self.own, self.joined, self.input = own, dict.fromkeys(_JOINED, ""), ""

    def whole(self):
        own = dict(self.own)
        for name in _JOINED:
            own[name] += self.joined[name]
        if self.input:
            data = self.input.encode("utf-8")
            own["input"], own["partial"] = (parse(data), "") if is_json(data) else (None, self.input)
        return own


class _Stream:
    def __init__(self, reader):
        self.reader = reader
        self._begin(_ANSWER.empty())

    def _begin(self, message):
        self.message, self.blocks, self.counts = message, streams.Numbered(_Block), None

    def read(self, data):
        for name, event in streams.answer_events(data):
            if name == b"error":
                return
            found = self.reader.bytes(_EVENT, event)
            if found["type"] in ("message_stop", "error"):
                return
            self._add(found)

    def _add(self, event):
        kind = event["type"]
        if kind == "message_start":
            if event["message"] is None:
                raise Broken("no message")
            self._begin(event["message"])
        elif kind == "content_block_start":
            block = self.blocks.at(event["index"])
            if event["content_block"] is None:
                raise Broken("no block")
            block.begin(event["content_block"])
        elif kind == "content_block_delta":
            block = self.blocks.get(event["index"])
            if block is None:
                raise Broken("a block that has not started")
            for name in _JOINED:
                block.joined[name] += event["delta"][name]
            block.input += event["delta"]["partial_json"]
        elif kind == "message_delta":
            self._count(event["usage"])

    def _count(self, later):
        if not there(later):
            return
        if not there(self.message["usage"]):
            self.message["usage"] = later
            return
        if self.counts is None and self.message["usage"].kind != "object" or later.kind != "object":
            raise Broken("counts that are no object")
        if self.counts is None:
            self.counts = dict(self.message["usage"].value)
        self.counts |= {name: node for name, node in dict(later.value).items() if there(node)}

    def answer(self):
        own = dict(self.message)
        if self.counts is not None:
            own["usage"] = Node("object", list(self.counts.items()), together(self.counts.items()))
        own["content"] = own["content"] + [block.whole() for _, block in self.blocks.all()]
        return own
