"""Calls of Chat Completions: section "openai.chat" of docs/readings.md."""

import base64
import re

import inclear
import streams
from lenient import (
    ANY,
    ARGUMENTS,
    TEXT,
    WHOLE,
    Broken,
    Form,
    Maybe,
    Node,
    OneOrMore,
    Reader,
    brief,
    compact,
    elements,
    first,
    member,
    members,
    parse,
    quoted,
    string,
    there,
    together,
    word,
    written,
    written_bytes,
)
from spoken import Answer, Message, Turn, at, decoded, file, function, inline, joined, text_part, unknown

PART = Form({"type": TEXT, "text": TEXT, "refusal": TEXT}, rest=True)


class _Content:
    """A text, or parts; it is read as what it is."""

    def empty(self):
        return ""

    def read(self, reader, node):
        if node.kind == "string":
            return node.value
        if node.kind != "array":
            raise Broken("neither a text nor an array")
        return reader.read([PART], node)


CONTENT = _Content()
_FUNCTION = Form({"name": TEXT, "arguments": ARGUMENTS})
_CALL = {"id": TEXT, "type": TEXT, "function": _FUNCTION, "custom": Form({"name": TEXT, "input": TEXT})}
_MESSAGE = Form(
    {
        "role": TEXT,
        "name": TEXT,
        "refusal": TEXT,
        "tool_call_id": TEXT,
        "reasoning_content": TEXT,
        "reasoning": TEXT,
        "content": CONTENT,
        "tool_calls": [Form(_CALL)],
        "function_call": Maybe(_FUNCTION),
        "audio": ANY,
        "images": ANY,
        "executed_tools": ANY,
        "annotations": ANY,
    }
)
_CHOICE = Form({"index": WHOLE, "finish_reason": TEXT, "message": _MESSAGE, "error": ANY})
_ANSWER = Form({"id": TEXT, "model": TEXT, "system_fingerprint": TEXT, "choices": [_CHOICE], "usage": ANY, "error": ANY, "citations": ANY})
_EXECUTED = Form({"index": WHOLE, "type": TEXT, "arguments": ARGUMENTS, "output": ANY}, rest=True)
_AUDIO = Form({"id": TEXT, "data": TEXT, "transcript": TEXT})
_DELTA = Form(
    {
        "role": TEXT,
        "content": CONTENT,
        "refusal": TEXT,
        "reasoning_content": TEXT,
        "reasoning": TEXT,
        "tool_calls": OneOrMore(Form(_CALL | {"index": Maybe(WHOLE)})),
        "function_call": Maybe(_FUNCTION),
        "audio": ANY,
        "images": ANY,
        "executed_tools": ANY,
        "annotations": ANY,
    }
)
_CHUNK = Form(
    {
        "id": TEXT,
        "object": TEXT,
        "model": TEXT,
        "system_fingerprint": TEXT,
        "choices": [Form({"index": WHOLE, "finish_reason": TEXT, "usage": ANY, "error": ANY, "delta": _DELTA})],
        "usage": ANY,
        "x_groq": Form({"usage": ANY}),
        "error": ANY,
        "citations": ANY,
    }
)
_DEPLOYMENT = re.compile(r"/deployments/([^/]*)")


def path_of(path):
    return path.partition("?")[0].removesuffix("/")


def read(reading):
    request, asks_for_one = reading.request(), False
    if request is not None:
        asks_for_one = not there(request.get("n")) or written(request["n"]) == "1"
        _request(reading, request)
    answer, _ = streams.answered(reading, _ANSWER, _Stream)
    if answer is None:
        return
    reading.said["model_version"] = answer["model"]
    reading.usage(answer["usage"])
    for node in elements(answer["citations"]):
        reading.cite(node)
    for choice in answer["choices"]:
        own = choice["message"]
        own["role"] = "assistant"
        said = _executed(own["executed_tools"]) + [_message(reading, own)]
        for node in elements(own["annotations"]):
            reading.cite(member(node, "url_citation", "url"))
        reading.answers.append(Answer(choice["index"], said))
    if len(reading.answers) > 1 and asks_for_one:
        reading.answers = [_one(sorted(reading.answers, key=lambda answer: answer.number))]


def _request(reading, request):
    deployment = _DEPLOYMENT.search(path_of(reading.call.path))
    reading.said["model"] = first(word(request.get("model")), deployment[1] if deployment else "")
    for message in reading.conversation(request, "messages", [_MESSAGE]):
        reading.prompt.append(_message(reading, message))
        reading.refer("audio", word(member(message["audio"], "id")))
    _tools(reading, request)
    search = request.get("enable_search")
    if there(request.get("web_search_options")) or search is not None and search.kind == "true":
        reading.refer("tool", "web_search")
    live = members(request.get("search_parameters"))
    if live is not None and word(live.get("mode")) != "off":
        reading.refer("tool", "live_search")
    for name, kind, its in (("plugins", "plugin", "id"), ("data_sources", "data_source", "type")):
        for node in elements(request.get(name)):
            reading.refer(kind, word(member(node, its)))
    reading.parameters(request)


def _tools(reading, request):
    for name in ("tools", "functions"):
        if name not in request:
            continue
        names = []
        for tool in reading.objects(request, name):
            kind = word(tool.get("type"))
            names.append(first(word(member(tool.get("function"), "name")), word(member(tool.get("custom"), "name")), word(tool.get("name")), kind))
            if name == "tools" and kind not in ("function", "custom"):
                reading.refer("tool", kind)
        reading.named[name] = inclear.names(names)


def _call(call):
    found = function(call["id"], call["function"]["name"], call["function"]["arguments"])
    found["type"] = call["type"] or "function"
    if any(call["custom"].values()):
        found["custom"] = call["custom"]
    return found


def _is_empty(call):
    return not (call["id"] or call["type"] or any(call["function"].values()) or any(call["custom"].values()))


def _message(reading, own):
    message = Message(own["role"], name=own["name"], refusal=own["refusal"], call_id=own["tool_call_id"])
    message.calls = [_call(call) for call in own["tool_calls"] if not _is_empty(call)]
    message.function_call = own["function_call"]
    message.content = parts(reading, own["content"])
    for node in elements(own["images"]):
        try:
            message.content.append(_file_part(reading, Reader().read(PART, node)))
        except Broken:
            continue
    message.content += _heard(own["audio"])
    return message


def _heard(audio):
    heard = []
    if word(member(audio, "transcript")):
        heard.append(text_part(word(member(audio, "transcript"))))
    if word(member(audio, "data")):
        heard.append(inline("input_audio", "", "", word(member(audio, "data"))))
    return heard


def parts(reading, content):
    """Content of OpenAI's two forms."""
    if isinstance(content, str):
        return [text_part(content)] if content else []
    found = []
    for part in content:
        if part["type"] in ("text", "input_text", "output_text", ""):
            found.append(text_part(part["text"]))
            _cited(reading, part)
        elif part["type"] == "refusal":
            found.append(text_part(part["refusal"]))
        elif part["type"] not in ("thinking", "reasoning") and (part["type"] != "reference" or not reading.reader.loose):
            found.append(_file_part(reading, part))
    return found


def _cited(reading, part):
    if not reading.reader.loose:
        return
    for node in elements(dict(part["rest"]).get("annotations")):
        kind = word(member(node, "type"))
        if kind == "url_citation":
            reading.cite(member(node, "url"))
        elif kind == "file_citation":
            reading.refer("file", word(member(node, "file_id")))


def _as_it_stands(rest):
    """The bytes of a rest."""
    return b"{" + b",".join(quoted(name) + b":" + node.raw for name, node in rest) + b"}" if rest else b""


def _file_part(reading, part):
    kind, own = part["type"], dict(part["rest"])
    if kind in ("image_url", "video_url"):
        return at(reading, kind, "", first(word(member(own.get(kind), "url")), word(own.get(kind))))
    if kind == "input_image":
        its_id = word(own.get("file_id"))
        return file(reading, kind, "", its_id) if its_id else at(reading, kind, "", word(own.get("image_url")))
    if kind == "input_audio":
        return inline(kind, "", word(member(own.get(kind), "format")), word(member(own.get(kind), "data")))
    if kind in ("file", "input_file"):
        own = members(own.get("file")) if members(own.get("file")) is not None else own
        name, its_id = brief(word(own.get("filename"))), word(own.get("file_id"))
        return file(reading, kind, name, its_id) if its_id else at(reading, kind, name, first(word(own.get("file_url")), word(own.get("file_data"))))
    return unknown(kind, Node("object", part["rest"], _as_it_stands(part["rest"])) if part["rest"] else None)


def _executed(node):
    """What the server's tools were asked and said."""
    turn = Turn("assistant")
    for item in elements(node):
        try:
            tool = Reader().read(_EXECUTED, item)
        except Broken:
            turn.say(unknown("executed_tools", item))
            continue
        its_id, output = f"#{tool['index'] + 1}", tool["output"]
        turn.call(function(its_id, tool["type"], tool["arguments"]))
        returned = written(output)
        if not there(output) and tool["rest"]:
            returned = written_bytes(together(tool["rest"]))
        elif output is not None and output.kind == "string":
            returned = word(output)
        turn.result([text_part(returned)], name=tool["type"], call_id=its_id)
    return turn.end()


def _one(answers):
    """One answer of several parts."""
    last = answers[0].said[-1]
    whole = Message("assistant", name=last.name, call_id=last.call_id)
    before = []
    for answer in answers:
        before += answer.said[:-1]
        part = answer.said[-1]
        whole.content += part.content
        whole.calls += part.calls
        whole.function_call = whole.function_call or part.function_call
        whole.refusal += part.refusal
    whole.content = joined(whole.content)
    return Answer(answers[0].number, [*before, whole])


class _Call:
    """A call that comes in fragments."""

    def __init__(self, number, entire):
        self.number, self.entire = number, entire
        self.id, self.type, self.name, self.custom, self.arguments, self.input = "", "", "", "", "", ""

    def add(self, fragment):
        own, custom = fragment["function"], fragment["custom"]
        self.id = self.id or fragment["id"]
        self.type = fragment["type"] or self.type
        self.name, self.custom = own["name"] or self.name, custom["name"] or self.custom
        if own["arguments"] != self.arguments or not streams.is_object(self.arguments.encode("utf-8")):
            self.arguments += own["arguments"]
        self.input += custom["input"]

    def whole(self):
        return {
            "id": self.id,
            "type": self.type,
            "function": {"name": self.name, "arguments": self.arguments},
            "custom": {"name": self.custom, "input": self.input},
        }


class _Calls:
    def __init__(self):
        self.calls, self.last_of, self.by_id = [], {}, {}

    def add(self, fragment):
        call = self._of(fragment)
        if call is None:
            call = self._begin(fragment)
        else:
            call.entire = False
        call.add(fragment)
        if fragment["id"]:
            self.by_id.setdefault(fragment["id"], call)

    def _begin(self, fragment):
        if len(self.calls) > streams.MAX_NUMBER:
            raise Broken("too many calls")
        number = fragment["index"]
        if number is None:
            number = self.calls[-1].number if self.calls else 0
        call = _Call(number, _is_entire(fragment))
        self.calls.append(call)
        if not 0 <= number <= streams.MAX_NUMBER:
            raise Broken("a number out of range")
        self.last_of[number] = call
        return call

    def _of(self, fragment):
        """The call to which a fragment belongs; None: it begins one."""
        if not self.calls:
            return None
        names = fragment["function"]["name"] or fragment["custom"]["name"]
        known = self.by_id.get(fragment["id"]) if fragment["id"] else None
        if fragment["index"] is None:
            if known is not None or names:
                return known
            return self.calls[-1]
        if known is not None and known.number == fragment["index"]:
            return known
        call = self.last_of.get(fragment["index"])
        if call is None or not names or not (call.name or call.custom):
            return call
        if fragment["id"] and call.id and fragment["id"] != call.id:
            return None
        if not fragment["id"] and not call.id and call.entire and _is_entire(fragment):
            return None
        return call

    def whole(self):
        return [call.whole() for call in sorted(self.calls, key=lambda call: call.number)]


def _is_entire(fragment):
    own = fragment["function"]
    return bool(own["name"]) and streams.is_object(own["arguments"].encode("utf-8"))


class _Choice:
    """One answer as it comes in pieces."""

    def __init__(self):
        self.role, self.content, self.refusal = "", "", ""
        self.calls, self.function = _Calls(), None
        self.images, self.annotations = [], []
        self.heard, self.sound, self.transcript = "", b"", ""
        self.executed = streams.Numbered(_EXECUTED.empty)

    def add(self, delta, reader):
        self.role = delta["role"] or self.role
        content = delta["content"]
        self.content += content if isinstance(content, str) else "".join(part["text"] for part in content if part["type"] != "reasoning")
        self.refusal += delta["refusal"]
        if delta["function_call"] is not None:
            self.function = self.function or _Call(0, False)
            self.function.add(Form(_CALL).empty() | {"function": delta["function_call"]})
        for fragment in delta["tool_calls"]:
            self.calls.add(fragment)
        self.images += elements(delta["images"])
        self.annotations += elements(delta["annotations"])
        self._hear(delta["audio"], reader)
        for node in elements(delta["executed_tools"]):
            self._execute(node, reader)

    def _hear(self, node, reader):
        if not there(node):
            return
        try:
            piece = reader.read(_AUDIO, node)
        except Broken:
            return
        self.heard = piece["id"] or self.heard
        self.transcript += piece["transcript"]
        self.sound += decoded(piece["data"]) or b""

    def _execute(self, node, reader):
        try:
            tool = reader.read(_EXECUTED, node)
        except Broken:
            return
        known = self.executed.at(tool["index"])
        for name in ("type", "arguments"):
            tool[name] = tool[name] or known[name]
        if not there(tool["output"]):
            tool["output"] = known["output"]
        if len(_as_it_stands(tool["rest"])) < len(_as_it_stands(known["rest"])):
            tool["rest"] = known["rest"]
        self.executed[tool["index"]] = tool

    def whole(self):
        own = _MESSAGE.empty() | {"role": self.role, "content": self.content, "refusal": self.refusal, "tool_calls": self.calls.whole()}
        if self.function:
            own["function_call"] = self.function.whole()["function"]
        sound = base64.b64encode(self.sound).decode()
        audio = [("id", string(self.heard)), ("data", string(sound)), ("transcript", string(self.transcript))]
        own["audio"] = Node("object", audio, b"")
        for name, list_of in (("images", self.images), ("annotations", self.annotations)):
            own[name] = Node("array", [parse(compact(node.raw)) for node in list_of], b"")
        own["executed_tools"] = Node("array", [_again(tool) for _, tool in self.executed.all()], b"")
        return own


def _again(tool):
    """An executed tool as a value."""
    own = [("index", Node("number", None, str(tool["index"]).encode())), ("type", string(tool["type"])), ("arguments", string(tool["arguments"]))]
    own += [("output", tool["output"])] if tool["output"] is not None else []
    return Node("object", own + tool["rest"], together(own + tool["rest"]))


class _Stream:
    def __init__(self, reader):
        self.reader, self.choices = reader, streams.Numbered(_Choice)
        self.model, self.usage, self.citations = "", None, None

    def read(self, data):
        for name, event in streams.answer_events(data):
            if event == streams.DONE or name == b"error":
                return
            chunk = self.reader.bytes(_CHUNK, event)
            self._add(chunk)
            if there(chunk["error"]) or chunk["object"] == "error":
                return

    def _add(self, chunk):
        self.model = chunk["model"] or self.model
        self.citations = _last(chunk["citations"], self.citations)
        for delta in chunk["choices"]:
            self.choices.at(delta["index"]).add(delta["delta"], self.reader)
            self.usage = _last(delta["usage"], self.usage)
        self.usage = _last(chunk["usage"], _last(chunk["x_groq"]["usage"], self.usage))

    def answer(self):
        choices = [_CHOICE.empty() | {"index": number, "message": choice.whole()} for number, choice in self.choices.all()]
        return _ANSWER.empty() | {"model": self.model, "usage": self.usage, "citations": self.citations, "choices": choices}


def _last(node, before):
    return node if there(node) else before

