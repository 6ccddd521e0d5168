"""What telemetry tells: section "otlp" of docs/readings.md."""

import base64
import math
import re

import inclear
from canonical import number_text
from lenient import (
    TEXT,
    TRUTH,
    Broken,
    Form,
    Maybe,
    Node,
    Reader,
    decimal,
    first,
    is_json,
    member,
    members,
    parse,
    quoted,
    string,
    there,
    together,
    value,
    word,
    written,
)
from saidresponses import output_of
from spoken import Answer, Message, Turn, at, decoded, file, function, inline, kind_of, text_part, unknown


class _Number:
    """A number, or a string with it."""

    def __init__(self, pattern, low, high, names=()):
        self.pattern, self.low, self.high, self.names = re.compile(pattern + r"\Z", re.ASCII), low, high, dict(names)

    def empty(self):
        return 0

    def read(self, reader, node):
        if node.kind not in ("number", "string"):
            raise Broken("no number")
        text = node.value if node.kind == "string" else node.raw.decode()
        if text in self.names:
            return self.names[text]
        if not self.pattern.match(text) or not self.low <= decimal(text) <= self.high:
            raise Broken("no number of this kind")
        return decimal(text)


class _Double:
    _PATTERN = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z", re.ASCII)
    _NAMES = {"nan": math.nan, "inf": math.inf, "infinity": math.inf}

    def empty(self):
        return 0.0

    def read(self, reader, node):
        if node.kind not in ("number", "string"):
            raise Broken("no number")
        text = node.value if node.kind == "string" else node.raw.decode()
        if text in ("NaN", "Infinity", "-Infinity"):
            return float(text)
        if not self._PATTERN.match(text) or math.isinf(float(text)):
            raise Broken("no double")
        return float(text)


class _Id:
    def empty(self):
        return ""

    def read(self, reader, node):
        if node.kind != "string" or len(node.value.encode()) > 64 or not re.match(r"(?:[0-9a-fA-F]{2})*\Z", node.value):
            raise Broken("no id")
        return node.value


class _Bytes:
    def empty(self):
        return b""

    def read(self, reader, node):
        found = None if node.kind != "string" or "\n" in node.value or "\r" in node.value else decoded(node.value)
        if found is None:
            raise Broken("no base64")
        return found


_CHOICES = {f"SPAN_KIND_{name}": n for n, name in enumerate(("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"))}
_CHOICES |= {f"STATUS_CODE_{name}": n for n, name in enumerate(("UNSET", "OK", "ERROR"))}
_CHOICES |= {f"SEVERITY_NUMBER_{name}": n for name, n in (("UNSPECIFIED", 0), ("TRACE", 1), ("DEBUG", 5), ("INFO", 9), ("WARN", 13), ("ERROR", 17), ("FATAL", 21))}
_COUNT, _TIME = _Number("[0-9]+", 0, 2**32 - 1), _Number("[0-9]+", 0, 2**64 - 1)
_INT, _CHOICE = _Number("[+-]?[0-9]+", -(2**63), 2**63 - 1), _Number("[+-]?[0-9]+", -(2**31), 2**31 - 1, _CHOICES)
_ID = _Id()
_VALUE = Form(
    {
        "stringValue": Maybe(TEXT),
        "boolValue": Maybe(TRUTH),
        "intValue": Maybe(_INT),
        "doubleValue": Maybe(_Double()),
        "bytesValue": Maybe(_Bytes()),
    }
)
_ATTRIBUTES = [Form({"key": TEXT, "value": _VALUE})]
_VALUE.members["arrayValue"] = Maybe(Form({"values": [_VALUE]}))
_VALUE.members["kvlistValue"] = Maybe(Form({"values": _ATTRIBUTES}))
_SOURCE = {"attributes": _ATTRIBUTES, "droppedAttributesCount": _COUNT}
_EVENT = Form(_SOURCE | {"timeUnixNano": _TIME, "name": TEXT})
_LINK = Form(_SOURCE | {"traceId": _ID, "spanId": _ID, "traceState": TEXT, "flags": _COUNT})
_SPAN = Form(
    _SOURCE
    | {
        "traceId": _ID,
        "spanId": _ID,
        "parentSpanId": _ID,
        "traceState": TEXT,
        "name": TEXT,
        "flags": _COUNT,
        "droppedEventsCount": _COUNT,
        "droppedLinksCount": _COUNT,
        "kind": _CHOICE,
        "startTimeUnixNano": _TIME,
        "endTimeUnixNano": _TIME,
        "events": [_EVENT],
        "links": [_LINK],
        "status": Form({"message": TEXT, "code": _CHOICE}),
    }
)
_LOG = Form(
    _SOURCE
    | {
        "timeUnixNano": _TIME,
        "observedTimeUnixNano": _TIME,
        "severityNumber": _CHOICE,
        "severityText": TEXT,
        "eventName": TEXT,
        "body": Maybe(_VALUE),
        "flags": _COUNT,
        "traceId": _ID,
        "spanId": _ID,
    }
)
_SCOPE = Form(_SOURCE | {"name": TEXT, "version": TEXT})


def _of(kind, name, what):
    scopes = [Form({"scope": _SCOPE, what: [kind], "schemaUrl": TEXT})]
    return [Form({"resource": Form(_SOURCE), name: scopes, "schemaUrl": TEXT})]


_DATA = Form({"resourceSpans": _of(_SPAN, "scopeSpans", "spans"), "resourceLogs": _of(_LOG, "scopeLogs", "logRecords")})

_MODEL, _TOOL, _AGENT, _NONE = "model", "tool", "agent", "none"


def _kinds(prefix="", **kinds):
    return {prefix + name: kind for kind, names in kinds.items() for name in names.split()}


_KINDS = {
    "gen_ai.operation.name": _kinds(
        model="chat text_completion generate_content",
        tool="execute_tool",
        agent="invoke_agent invoke_workflow",
        none="embeddings create_agent retrieval",
    ),
    "openinference.span.kind": _kinds(
        model="LLM", tool="TOOL", agent="AGENT", none="CHAIN EMBEDDING RETRIEVER RERANKER GUARDRAIL EVALUATOR PROMPT"
    ),
}
_SIGNS = {
    "gen_ai.input.messages",
    "gen_ai.output.messages",
    "gen_ai.request.model",
    "llm.input_messages.0.message.role",
    "llm.model_name",
}
_DETAILS = "gen_ai.client.inference.operation.details"
_HIDDEN = "__REDACTED__"
_COUNTS = {"prompt": "input_tokens", "completion": "output_tokens", "total": "total_tokens"}
_COUNTS |= {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}
_ROLES = {"model": "assistant", "ai": "assistant", "human": "user", "function": "tool"}
_EVENT_ROLES = {f"gen_ai.{role}.message": role for role in ("system", "developer", "user", "assistant", "tool")}
_MAX_PARTS = 16


def _string(own):
    """The string that an attribute is; empty: it is none."""
    return (own or {}).get("stringValue") or ""


def _last(attributes, name):
    return next((one["value"] for one in reversed(attributes) if one["key"] == name), None)


def _json(own):
    """A value as JSON, in bytes."""
    if own["stringValue"] is not None:
        return quoted(own["stringValue"])
    if own["boolValue"] is not None:
        return b"true" if own["boolValue"] else b"false"
    if own["intValue"] is not None:
        number = own["intValue"]
        return str(number).encode() if -(2**53) < number < 2**53 else quoted(str(number))
    if own["doubleValue"] is not None:
        return _double(own["doubleValue"])
    if own["bytesValue"] is not None:
        return quoted(base64.b64encode(own["bytesValue"]).decode())
    if own["arrayValue"] is not None:
        return b"[" + b",".join(map(_json, own["arrayValue"]["values"])) + b"]"
    if own["kvlistValue"] is not None:
        pairs = sorted({one["key"]: one["value"] for one in own["kvlistValue"]["values"]}.items())
        return b"{" + b",".join(quoted(name) + b":" + _json(one) for name, one in pairs) + b"}"
    return b"null"


def _double(number):
    if math.isnan(number) or math.isinf(number):
        return quoted("NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity")
    return b"-0" if number == 0 and math.copysign(1, number) < 0 else number_text(number).encode()


def _node(own):
    return parse(_json(own))


def _text(own):
    """An attribute as a text."""
    return own["stringValue"] if own["stringValue"] is not None else written(_node(own))


def _inside(text):
    """The value that a string is; None: it is no JSON."""
    data = text.encode("utf-8")
    return parse(data) if is_json(data) else None


def _objects(node):
    if node is None:
        return []
    found = [members(one) for one in (node.value if node.kind == "array" else [node])]
    return [one for one in found if one is not None]


def _put(pairs):
    return Node("object", list(pairs.items()), together(pairs.items()))


def _speaker(role, otherwise):
    role = (role or otherwise).lower()
    return _ROLES.get(role) or role


def _arguments(node):
    if not there(node):
        return ""
    return node.value if node.kind == "string" else written(node)


def _one_there(own, name, older):
    return own.get(name) if there(own.get(name)) else own.get(older)


def _whole(node):
    """The whole number that is the canonical form of a value, at most of 64 bits; otherwise 0."""
    text = written(node)
    return max(-(2**63), min(decimal(text), 2**63 - 1)) if re.match(r"[+-]?[0-9]+\Z", text, re.ASCII) else 0


class _Branch:
    """Attributes whose names have points, as a tree."""

    def __init__(self):
        self.value, self.under = None, {}

    def at(self, name):
        found = self
        for part in name.split("."):
            found = found.under.get(part) if found is not None else None
        return found

    def text(self, name):
        found = self.at(name)
        return "" if found is None or found.value is None else _text(found.value)

    def items(self):
        numbers = sorted(int(name) for name in self.under if re.match(r"(?:0|[1-9][0-9]{0,17})\Z", name, re.ASCII))
        return [self.under[str(number)] for number in numbers]


class _Telling:
    def __init__(self, reading):
        self.reading, self.said, self.events = reading, {}, []
        self.kind, self.failed, self.cut = None, False, set()
        self.prompt, self.answers = None, []

    def take(self, data):
        for resource in data["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    self._span(span)
        for resource in data["resourceLogs"]:
            for scope in resource["scopeLogs"]:
                for log in scope["logRecords"]:
                    name = log["eventName"] or _string(_last(log["attributes"], "event.name"))
                    self._event(name, log["attributes"], log["body"])

    def _span(self, span):
        self.kind, self.failed = _kind(span["attributes"]), span["status"]["code"] == 2
        self._attributes(span["attributes"])
        for event in span["events"]:
            self._event(event["name"], event["attributes"], None)

    def _attributes(self, attributes):
        for one in attributes:
            self.said[one["key"]] = one["value"]

    def _event(self, name, attributes, body):
        if name != _DETAILS:
            self.events.append((name, attributes, body))
            return
        self._attributes(attributes)
        if body is not None and body["kvlistValue"] is not None:
            self._attributes(body["kvlistValue"]["values"])

    def tell(self):
        said = self.reading.said
        self.asked = members(self._document("llm.invocation_parameters")) or {}
        self.responded = members(_inside(_string(self.said.get("output.value")))) or {}
        self._models(said)
        if self.kind != _AGENT:
            self._usage(said)
        self._parameters(said)
        if self.kind == _TOOL:
            self._tool()
        else:
            self._first(self._asked, self._asked_in_events, self._asked_open_inference, self._asked_at_all)
            self._first(
                self._answered,
                self._answered_in_events,
                self._answered_open_inference,
                self._answered_at_all,
            )
        self.reading.prompt, self.reading.answers = self.prompt, self.answers

    def _first(self, *ways):
        for way in ways:
            if way():
                return

    def _strings(self, *names):
        return first(*(_string(self.said.get(name)) for name in names))

    def _under(self, prefix):
        return sorted(name.removeprefix(prefix) for name in self.said if name.startswith(prefix))

    def _document(self, name, direction=None):
        """An attribute that is JSON; None: it is not told, or cut."""
        own = self.said.get(name)
        if own is None:
            return None
        if own["stringValue"] is None:
            return _node(own)
        node = _inside(own["stringValue"])
        if node is None and direction:
            self.cut.add(direction)
        return node

    def _models(self, said):
        either = self._strings("llm.model_name")
        asked = word(self.asked.get("model"))
        said["model"] = first(self._strings("gen_ai.request.model", "llm.request.model_name"), asked, either)
        said["model_version"] = self._strings("gen_ai.response.model", "llm.response.model_name")
        if not said["model_version"] and either and word(self.responded.get("model")) == either:
            said["model_version"] = either

    def _usage(self, said):
        usage = {}
        for prefix in ("gen_ai.usage.", "llm.token_count."):
            for name in self._under(prefix):
                own = self.said[prefix + name]
                if _COUNTS.get(name, name) not in usage and (own["intValue"] is not None or own["doubleValue"] is not None):
                    usage[_COUNTS.get(name, name)] = _node(own)
        if usage:
            self.reading.counted(value(_put(usage)))

    def _parameters(self, said):
        texts = (
            ("operation", ("gen_ai.operation.name",)),
            ("provider", ("gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system")),
            ("agent", ("gen_ai.agent.name", "agent.name")),
            ("server", ("server.address",)),
        )
        for name, names in texts:
            self.reading.named |= inclear.named(**{name: self._strings(*names)})
        settings = {name: _node(self.said["gen_ai.request." + name]) for name in self._under("gen_ai.request.")}
        tools = self._tools()
        if tools:
            self.reading.named["tools"] = inclear.names(tools)
        self.reading.parameters(self.asked | settings)
        if not said["parameters"]:
            del said["parameters"]

    def _tools(self):
        names = [_tool_name(one) for one in _objects(self._document("gen_ai.tool.definitions"))]
        for tool in self._branch("llm.tools.").items():
            names.append(first(tool.text("tool.name"), _tool_name(members(_inside(tool.text("tool.json_schema"))) or {})))
        return names

    def _branch(self, prefix):
        root = _Branch()
        for rest in self._under(prefix):
            branch = root
            for part in rest.split(".", _MAX_PARTS - 1):
                branch = branch.under.setdefault(part, _Branch())
            branch.value = self.said[prefix + rest]
        return root

    def _first_there(self, *names):
        return next((_text(self.said[name]) for name in names if name in self.said), None)

    def _tool(self):
        name = self._strings("gen_ai.tool.name", "tool.name", "tool_call.function.name")
        its_id = self._strings("gen_ai.tool.call.id", "tool_call.id", "tool.id")
        arguments = self._first_there("gen_ai.tool.call.arguments", "tool_call.function.arguments", "input.value")
        result = self._first_there("gen_ai.tool.call.result", "output.value")
        if name or arguments is not None:
            message = Message("assistant")
            message.calls = [function(its_id, name, arguments or "")]
            self.prompt = [message]
        if result is not None:
            self.answers = [Answer(0, [Message("tool", [text_part(result)], call_id=its_id, is_error=self.failed)])]

    def _answer(self, number, said):
        if self.kind == _AGENT and self.answers:
            self.answers[0].said += said
        else:
            self.answers.append(Answer(number, said))

    def _add(self, messages):
        self.prompt = (self.prompt or []) + messages if messages else self.prompt

    def _asked(self):
        system = self._instructions()
        told = "gen_ai.input.messages" in self.said
        messages = self._document("gen_ai.input.messages", "prompt")
        if "prompt" in self.cut:
            return True
        if not told:
            elsewhere = self._under("llm.input_messages.") or self.events
            if system is not None and not elsewhere:
                self._add(self._turn({"parts": system}, "system"))
                return True
            return False
        self.prompt = []
        if system is not None:
            self._add(self._turn({"parts": system}, "system"))
        for one in _objects(messages):
            self._add(self._turn(one, "user"))
        return True

    def _instructions(self):
        own = self.said.get("gen_ai.system_instructions")
        text = None if own is None else own["stringValue"]
        if text is None or text.startswith("[") or text == _HIDDEN:
            return self._document("gen_ai.system_instructions", "prompt")
        return Node("array", [_put({"type": string("text"), "content": string(text)})], b"")

    def _answered(self):
        if "gen_ai.output.messages" not in self.said:
            return False
        for number, one in enumerate(_objects(self._document("gen_ai.output.messages", "response"))):
            self._answer(number, self._turn(one, "assistant"))
        return True

    def _turn(self, own, role):
        role = _speaker(word(own.get("role")), role)
        if not there(own.get("parts")):
            return [self._like_a_chat(own, role)]
        turn = Turn(role)
        for part in _objects(own["parts"]):
            self._part(turn, part)
        said = turn.end()
        for message in said:
            if message.role != "tool":
                message.name = word(own.get("name"))
        return said

    def _like_a_chat(self, own, role):
        its_id = word(own.get("tool_call_id"))
        if role == "tool":
            its_id = its_id or word(own.get("id"))
        message = Message(role, output_of(self.reading, own.get("content")), name=word(own.get("name")), call_id=its_id)
        for call in _objects(own.get("tool_calls")):
            asked = members(call.get("function"))
            asked = call if asked is None else asked
            message.calls.append(function(word(call.get("id")), word(asked.get("name")), _arguments(asked.get("arguments"))))
        return message

    def _part(self, turn, own):
        kind, modality = word(own.get("type")), kind_of(word(own.get("modality")))
        if kind in ("text", "input_text", "output_text"):
            turn.say(text_part(first(word(own.get("content")), word(own.get("text")))))
        elif kind in ("reasoning", "thinking"):
            return
        elif kind == "tool_call":
            turn.call(function(word(own.get("id")), word(own.get("name")), _arguments(own.get("arguments"))))
        elif kind == "tool_call_response":
            turn.result(output_of(self.reading, _one_there(own, "response", "result")), call_id=word(own.get("id")))
        elif kind == "blob":
            turn.say(inline(modality, "", word(own.get("mime_type")), word(own.get("content"))))
        elif kind == "uri":
            turn.say(at(self.reading, modality, "", word(own.get("uri"))))
        elif kind == "file":
            turn.say(file(self.reading, modality, "", word(own.get("file_id"))))
        else:
            turn.say(unknown(kind, _put(own)))

    def _asked_in_events(self):
        for name, attributes, body in self.events:
            if name in _EVENT_ROLES:
                self._add(self._turn(_event_object(attributes, body), _EVENT_ROLES[name]))
            elif name == "gen_ai.content.prompt":
                self._add(self._old_messages(_last(attributes, "gen_ai.prompt"), "user"))
        return self.prompt is not None

    def _answered_in_events(self):
        for name, attributes, body in self.events:
            if name == "gen_ai.choice":
                own = _event_object(attributes, body)
                message = members(own.get("message"))
                self._answer(_whole(own.get("index")), self._turn(own if message is None else message, "assistant"))
            elif name == "gen_ai.content.completion":
                for number, message in enumerate(self._old_messages(_last(attributes, "gen_ai.completion"), "assistant")):
                    self._answer(number, [message])
        return bool(self.answers)

    def _old_messages(self, own, role):
        if own is None or own["stringValue"] is None:
            return []
        node = _inside(own["stringValue"])
        if node is None:
            return [Message(role, [text_part(own["stringValue"])])]
        return [message for one in _objects(node) for message in self._turn(one, role)]

    def _asked_open_inference(self):
        for item in self._branch("llm.input_messages.").items():
            self._add(self._open_inference(item.at("message"), "user"))
        system = self.asked.get("system")
        if self.prompt is not None and there(system) and not any(message.role == "system" for message in self.prompt):
            self.prompt.insert(0, Message("system", output_of(self.reading, system)))
        return self.prompt is not None

    def _answered_open_inference(self):
        items = self._branch("llm.output_messages.").items()
        choices = max(_whole(self.asked.get("n")), *(len(_objects(self.responded.get(name))) for name in ("choices", "candidates")))
        for number, item in enumerate(items):
            said = self._open_inference(item.at("message"), "assistant")
            if len(items) > 1 and choices > 1 or not self.answers:
                self._answer(number, said)
            else:
                self.answers[0].said += said
        return bool(self.answers)

    def _open_inference(self, branch, role):
        branch = branch or _Branch()
        said, thought, known = [], False, []
        message = Message(_speaker(branch.text("role"), role), name=branch.text("name"), call_id=branch.text("tool_call_id"))
        if branch.text("content"):
            message.content = [text_part(branch.text("content"))]
        if message.role == "user" and message.call_id:
            said.append(Message("tool", message.content, call_id=message.call_id))
            message.call_id, message.content = "", []
        for item in (branch.at("tool_calls") or _Branch()).items():
            _open_inference_call(message, item.at("tool_call"), known)
        for item in (branch.at("contents") or _Branch()).items():
            inside = item.at("message_content") or _Branch()
            kind = inside.text("type")
            if item.at("tool_call") is not None:
                _open_inference_call(message, item.at("tool_call"), known)
            elif kind in ("reasoning", "thinking"):
                thought = True
            elif inside.at("text") is not None:
                message.content.append(text_part(inside.text("text")))
            elif inside.at("image") is not None:
                message.content.append(at(self.reading, "image_url", "", first(inside.text("image.image.url"), inside.text("image.url"))))
            else:
                message.content.append(unknown(kind, None))
        if branch.text("function_call_name"):
            message.calls.append(function("", branch.text("function_call_name"), branch.text("function_call_arguments_json")))
        if not said and not thought or message.content or message.calls:
            said.append(message)
        return said

    def _asked_at_all(self):
        text = self._first_there("input.value")
        if text is not None and self.kind == _AGENT:
            self.prompt = [Message("user", [text_part(text)])]
        return True

    def _answered_at_all(self):
        text = self._first_there("output.value")
        if text is not None and self.kind == _AGENT:
            self.answers = [Answer(0, [Message("assistant", [text_part(text)])])]
        return True


def _kind(attributes):
    none = False
    for name, meanings in _KINDS.items():
        kind = meanings.get(_string(_last(attributes, name)))
        if kind not in (None, _NONE):
            return kind
        none = none or kind == _NONE
    return _MODEL if not none and any(one["key"] in _SIGNS for one in attributes) else None


def _tool_name(own):
    return first(word(member(own.get("function"), "name")), word(own.get("name")), word(own.get("type")))


def _open_inference_call(message, branch, known):
    branch = branch or _Branch()
    call = function(branch.text("id"), branch.text("function.name"), branch.text("function.arguments"))
    if not call["id"] or call not in known:
        message.calls.append(call)
        known.append(call)


def _event_object(attributes, body):
    if body is not None:
        node = _inside(body["stringValue"]) if body["stringValue"] is not None else None
        node = _node(body) if node is None else node
        return {"content": node} if members(node) is None else members(node)
    content = _last(attributes, "gen_ai.event.content")
    if content is not None:
        own = members(_inside(content["stringValue"])) if content["stringValue"] is not None else None
        return {"content": _node(content)} if own is None else own
    own = {}
    for one in attributes:
        inside = _inside(_string(one["value"])) if one["key"] in ("message", "tool_calls") else None
        own[one["key"]] = _node(one["value"]) if inside is None else inside
    return own


def read(reading):
    try:
        data = Reader().bytes(_DATA, reading.call.request)
    except Broken:
        return
    telling = _Telling(reading)
    telling.take(data)
    telling.tell()
