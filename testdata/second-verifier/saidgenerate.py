"""Calls of generateContent: section "gemini.generate" of docs/readings.md."""

import re

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
    OneOrMore,
    Reader,
    brief,
    decimal,
    elements,
    empty,
    member,
    members,
    objects_in_array,
    parse,
    quoted,
    there,
    word,
    written,
)
from saidchat import path_of
from spoken import Answer, Turn, function, inline, kind_of, text_part, unknown

_PIECE = Form({"jsonPath": TEXT, "stringValue": Maybe(TEXT), "numberValue": ANY, "boolValue": Maybe(TRUTH)})
_PARTS = {
    "text": TEXT,
    "thought": TRUTH,
    "functionCall": Maybe(Form({"id": TEXT, "name": TEXT, "args": ANY, "partialArgs": Maybe([_PIECE]), "willContinue": TRUTH})),
    "functionResponse": Maybe(Form({"id": TEXT, "name": TEXT, "response": ANY, "parts": ANY})),
    "inlineData": Maybe(Form({"mimeType": TEXT, "data": TEXT}, loosely=("mimeType",))),
    "fileData": Maybe(Form({"mimeType": TEXT, "fileUri": TEXT}, loosely=("mimeType", "fileUri"))),
    "executableCode": Maybe(Form({"id": TEXT, "language": TEXT, "code": TEXT})),
    "codeExecutionResult": Maybe(Form({"id": TEXT, "outcome": TEXT, "output": TEXT})),
    "toolCall": Maybe(Form({"id": TEXT, "toolType": TEXT, "args": ANY}, loosely=("toolType",))),
    "toolResponse": Maybe(Form({"id": TEXT, "toolType": TEXT, "response": ANY}, loosely=("toolType",))),
    "thoughtSignature": TEXT,
}
_PART = Form(_PARTS, rest=True, loosely=[name for name in _PARTS if name not in ("text", "thought")])
_CONTENT = Form({"role": TEXT, "parts": OneOrMore(_PART)})
_RATINGS = [Form({"category": TEXT, "probability": TEXT, "blocked": TRUTH})]
_CANDIDATE = Form(
    {
        "index": WHOLE,
        "content": _CONTENT,
        "finishReason": TEXT,
        "finishMessage": TEXT,
        "safetyRatings": _RATINGS,
        "groundingMetadata": ANY,
        "urlContextMetadata": ANY,
    }
)
_ANSWER = Form(
    {
        "candidates": [Maybe(_CANDIDATE)],
        "modelVersion": TEXT,
        "responseId": TEXT,
        "promptFeedback": Form({"blockReason": TEXT, "blockReasonMessage": TEXT, "safetyRatings": _RATINGS}),
        "usageMetadata": ANY,
        "error": ANY,
    }
)
_ANSWER.members["response"] = Maybe(_ANSWER)
_DETAILS = {"videoMetadata", "mediaResolution", "mediaProcessing", "partMetadata"}
_DETAILS |= {"video_metadata", "media_resolution", "media_processing", "part_metadata"}
_CODE = "code_execution"
_ROLES = {"": "user", "function": "user", "model": "assistant"}


def read(reading):
    before, _, last = path_of(reading.call.path).rpartition("/")
    model = last.partition(":")[0]
    reading.said["model"] = "tunedModels/" + model if before.endswith("tunedModels") else model
    calls = _Calls()
    request = reading.request()
    if request is not None:
        if last.startswith("v1internal:"):
            reading.said["model"] = word(request.get("model"))
            request = members(request.get("request"))
        _request(reading, calls, {} if request is None else request)
    answer, _ = streams.answered(reading, _ANSWER, _Stream)
    if answer is None:
        return
    answer = opened(answer)
    reading.said["model_version"] = answer["modelVersion"]
    reading.usage(answer["usageMetadata"])
    in_request = calls.count
    for candidate in answer["candidates"]:
        if candidate is None:
            continue
        calls.count = in_request
        said = _turn(reading, calls, "assistant", candidate["content"]["parts"])
        _grounds(reading, candidate)
        reading.answers.append(Answer(candidate["index"], said))


def opened(answer):
    if answer["response"] is None:
        return answer
    inside = answer["response"]
    return inside if there(inside["error"]) else inside | {"error": answer["error"]}


class _Calls:
    """Ids of calls."""

    def __init__(self):
        self.count = 0

    def id(self, given):
        self.count += 1
        return given or f"#{self.count}"


def _either(holder, name, other):
    return other if other in holder else name


def _request(reading, calls, request):
    system = _either(request, "systemInstruction", "system_instruction")
    cached = _either(request, "cachedContent", "cached_content")
    content = _system(reading, request.get(system))
    if content:
        reading.prompt = _turn(reading, calls, "system", content) or None
    for one in reading.conversation(request, "contents", OneOrMore(_CONTENT)):
        reading.prompt += _turn(reading, calls, _ROLES.get(one["role"], one["role"]), one["parts"])
    reading.refer("cachedContent", word(request.get(cached)))
    if "tools" in request:
        reading.named["tools"] = inclear.names(_tools(reading, request))
    reading.parameters(request)


def _system(reading, node):
    if not there(node):
        return []
    try:
        return reading.reader.read(_CONTENT, node)["parts"]
    except Broken:
        return []


def _tools(reading, request):
    names = []
    for tool in reading.objects(request, "tools"):
        functions = _either(tool, "functionDeclarations", "function_declarations")
        names += [word(one.get("name")) for one in reading.objects(tool, functions)]
        for name in sorted(set(tool) - {functions}, key=lambda name: name.encode("utf-8")):
            names.append(name)
            reading.refer("tool", name)
    return names


def _turn(reading, calls, role, parts):
    turn = Turn(role)
    for part in parts:
        if not part["thought"]:
            _part(reading, calls, turn, part)
    return turn.end()


def _part(reading, calls, turn, part):
    if one := part["functionCall"]:
        turn.call(function(calls.id(one["id"]), one["name"], written(one["args"])))
    if one := part["functionResponse"]:
        shown = [text_part(written(one["response"]))] + [_shown(node) for node in elements(one["parts"])]
        failed = there(member(one["response"], "error"))
        turn.result(shown, name=one["name"], call_id=one["id"], is_error=failed)
    if one := part["toolCall"]:
        turn.call(function(calls.id(one["id"]), one["toolType"], written(one["args"])))
    if one := part["toolResponse"]:
        name = one["toolType"]
        turn.result([text_part(written(one["response"]))], name=name, call_id=one["id"])
    if one := part["executableCode"]:
        turn.call(function(calls.id(one["id"]), _CODE, one["code"]))
    if one := part["codeExecutionResult"]:
        failed = one["outcome"] not in ("", "OUTCOME_OK")
        turn.result([text_part(one["output"])], name=_CODE, call_id=one["id"], is_error=failed)
    if one := part["inlineData"]:
        turn.say(inline(kind_of(one["mimeType"]), "", one["mimeType"], one["data"]))
    if one := part["fileData"]:
        address = addresses.clean(one["fileUri"])
        reading.refer("file", address)
        shown = {"type": kind_of(one["mimeType"]), "media_type": brief(one["mimeType"]), "url": address}
        turn.say({name: item for name, item in shown.items() if item})
    if part["text"]:
        turn.say(text_part(part["text"]))
    own = dict(part["rest"])
    for name in sorted(set(own) - _DETAILS, key=lambda name: name.encode("utf-8")):
        turn.say(unknown(brief(name), own[name]))


def _shown(node):
    try:
        one = Reader().read(_PART, node)["inlineData"]
    except Broken:
        one = None
    return inline(kind_of(one["mimeType"]), "", one["mimeType"], one["data"]) if one is not None else unknown("part", node)


def _grounds(reading, candidate):
    found = candidate["groundingMetadata"]
    for name in ("webSearchQueries", "imageSearchQueries", "retrievalQueries"):
        for node in elements(member(found, name)):
            reading.refer("search", word(node))
    for node in elements(member(found, "groundingChunks")):
        chunk = members(node) or {}
        for name in sorted(chunk, key=lambda name: name.encode("utf-8")):
            reading.cite(member(chunk[name], "uri"))
    for node in elements(member(candidate["urlContextMetadata"], "urlMetadata")):
        reading.cite(member(node, "retrievedUrl"))


_STEP = re.compile(r"\.([^.\[]*)|\['(.*?)'\]|\[\"(.*?)\"\]|\[([+-]?[0-9]+)\]", re.DOTALL)
_MAX_STEPS, _MAX_EMPTY, _MAX_VALUES = 64, 8, 1 << 16


class _Argument:
    """A value that grows by pieces."""

    def __init__(self):
        self.members, self.elements, self.text, self.whole = None, None, None, None

    def under(self, name, number, values):
        of_another_kind = self.elements is not None if number is None else self.members is not None
        if self.whole is not None or self.text is not None or of_another_kind:
            raise Broken("a step into a value of another kind")
        if number is None:
            self.members = {} if self.members is None else self.members
            if name not in self.members:
                values.add(1)
                self.members[name] = _Argument()
            return self.members[name]
        known = self.elements or []
        if number > len(known) + _MAX_EMPTY:
            raise Broken("an element far behind the end")
        if number >= len(known) or known[number] is None:
            values.add(max(1, number + 1 - len(known)))
            self.elements = known + [None] * (number + 1 - len(known))
            self.elements[number] = _Argument()
        return self.elements[number]

    def set(self, piece, values):
        path, at = piece["jsonPath"], self
        if not path.startswith("$"):
            raise Broken("a path that does not begin with $")
        place = 1
        for step in range(len(path)):
            if place == len(path):
                break
            match = _STEP.match(path, place)
            if step == _MAX_STEPS or not match:
                raise Broken("a path that is none")
            number = None if match[4] is None else decimal(match[4])
            if number is not None and not 0 <= number <= streams.MAX_NUMBER:
                raise Broken("an element out of range")
            name = next((group for group in match.groups()[:3] if group is not None), "")
            at, place = at.under(name, number, values), match.end()
        if piece["stringValue"] is not None:
            at.text = (at.text or "") + piece["stringValue"]
        elif there(piece["numberValue"]):
            at.whole = piece["numberValue"].raw
        else:
            at.whole = b"null" if piece["boolValue"] is None else b"true" if piece["boolValue"] else b"false"

    def bytes(self):
        if self.text is not None:
            return quoted(self.text)
        if self.whole is not None:
            return self.whole
        if self.elements is not None:
            return b"[" + b",".join(b"{}" if item is None else item.bytes() for item in self.elements) + b"]"
        return b"{" + b",".join(quoted(name) + b":" + item.bytes() for name, item in sorted((self.members or {}).items())) + b"}"


class _Values:
    def __init__(self):
        self.count = 0

    def add(self, count):
        self.count += count
        if self.count > _MAX_VALUES:
            raise Broken("too many values")


class _Candidate:
    def __init__(self):
        self.parts, self.calls, self.grounding, self.context = [], [], None, None

    def take(self, part, values):
        call = part["functionCall"]
        if call is None:
            self.parts.append(part)
            return
        if self.calls and self.calls[-1]["open"] and not call["name"]:
            known = self.calls[-1]
        elif not call["name"] and not call["id"] and call["partialArgs"] is None and not there(call["args"]):
            return
        else:
            self.parts.append(part)
            if not call["willContinue"] and call["partialArgs"] is None:
                return
            known = {"call": call, "argument": _Argument()}
            if call["args"] is not None and len(call["args"].raw) > 2:
                known["argument"].whole = call["args"].raw
            self.calls.append(known)
        known["open"] = call["willContinue"]
        for piece in call["partialArgs"] or []:
            known["argument"].set(piece, values)

    def whole(self, number):
        for known in self.calls:
            known["call"]["args"] = parse(known["argument"].bytes())
        own = _CANDIDATE.empty() | {"index": number, "groundingMetadata": self.grounding, "urlContextMetadata": self.context}
        own["content"] = own["content"] | {"parts": self.parts}
        return own


class _Stream:
    def __init__(self, reader):
        self.reader, self.candidates, self.values = reader, streams.Numbered(_Candidate), _Values()
        self.model, self.usage = "", None

    def read(self, data):
        for event in self._chunks(data):
            chunk = opened(self.reader.bytes(_ANSWER, event))
            try:
                self._add(chunk)
            except Broken:
                if not there(chunk["error"]):
                    raise
            if there(chunk["error"]):
                return

    def _chunks(self, data):
        if not streams.stripped(data).startswith(b"["):
            for _, event in streams.answer_events(data):
                yield event
            return
        yield from objects_in_array(data, self.reader.strict)

    def _add(self, chunk):
        self.model = chunk["modelVersion"] or self.model
        self.usage = chunk["usageMetadata"] if there(chunk["usageMetadata"]) else self.usage
        for candidate in chunk["candidates"]:
            if candidate is None:
                raise Broken("a candidate that is null")
            known = self.candidates.at(candidate["index"])
            for part in candidate["content"]["parts"]:
                known.take(part, self.values)
            known.grounding = candidate["groundingMetadata"] if there(candidate["groundingMetadata"]) else known.grounding
            known.context = candidate["urlContextMetadata"] if there(candidate["urlContextMetadata"]) else known.context

    def answer(self):
        candidates = [candidate.whole(number) for number, candidate in self.candidates.all()]
        return empty(_ANSWER) | {"candidates": candidates, "modelVersion": self.model, "usageMetadata": self.usage}
