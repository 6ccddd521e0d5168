"""Messages, turns and answers: sections "Addresses, pictures, files" and "Messages" of docs/readings.md."""

import base64
import binascii
import re

import addresses
import inclear
from canonical import Refused, check_bounds, form
from lenient import Broken, Reader, brief, member, members, parse, there, value, word, written
from shapes import digest_of

_MAX_PROMPT, _MAX_OTHER, _MAX_REFERENCES = 16 << 20, 8 << 20, 1000


class Reading:
    """What is read of a call, as far as it has come."""

    def __init__(self, call, loose):
        self.call, self.reader = call, Reader(loose)
        self.said, self.references, self.answers = {}, [], []
        self.prompt, self.called = None, {}  # called: of the Responses API, the id of a call by the id of its item
        self.named = {}  # of parameters: names that stand in clear

    def refer(self, kind, what):
        reference = brief(f"{kind}:{what}")
        if what and reference not in self.references and len(self.references) < _MAX_REFERENCES:
            self.references.append(reference)

    def cite(self, node):
        if word(node):
            self.refer("url", addresses.clean(word(node)))

    def request(self):
        """The members of the request; None: nothing is read from it."""
        try:
            node = parse(self.call.request)
        except Broken:
            return None
        return members(node)

    def conversation(self, request, name, wanted):
        """A member with messages, by its form; a value that can be read gives a prompt."""
        if name not in request:
            return []
        try:
            found = self.reader.read(wanted, request[name])
        except Broken:
            return []
        if self.prompt is None:
            self.prompt = []
        return found

    def objects(self, holder, name):
        """An array of objects; null in it is an object without members. None: the member has another form."""
        node = member(holder, name) if not isinstance(holder, dict) else holder.get(name)
        if not there(node):
            return []
        if node.kind != "array" or any(item.kind not in ("object", "null") for item in node.value):
            return []
        return [members(item) or {} for item in node.value]

    def texts(self, node):
        """An array of texts."""
        try:
            return self.reader.read(["text"], node) if there(node) else []
        except Broken:
            return []

    def parameters(self, request):
        settings = {name: value(node) for name, node in request.items() if inclear.is_setting(name)}
        self.said["parameters"] = inclear.kept(settings, inclear.is_setting) | self.named

    def usage(self, node):
        if there(node):
            self.counted(value(node))

    def counted(self, reported):
        try:
            self.said["usage"] = inclear.in_clear(reported, inclear.is_counter)
        except inclear.Nothing:
            pass

    def result(self):
        """The members that the bytes say, each as a value that has a canonical form."""
        said = {name: item for name, item in self.said.items() if item is not None}
        if self.prompt is not None:
            said["prompt"] = [_shown(item) for item in self.prompt]
        if self.answers:
            spoken = [item for item in min(self.answers, key=lambda answer: answer.number).said if _has_something(item)]
            if spoken:
                said["response"] = _response(spoken)
        if self.references:
            said["context_by_reference"] = inclear.references(self.references)
        for name, limit in (("prompt", _MAX_PROMPT), ("response", _MAX_OTHER), ("parameters", _MAX_OTHER)):
            if name in said and not _fits(said[name], limit):
                del said[name]
        return {name: item for name, item in said.items() if name not in ("model", "model_version") or inclear.is_plain(item)}


def _fits(said, limit):
    try:
        check_bounds(said)
    except Refused:
        return False
    return len(form(said)) <= limit


class Answer:
    def __init__(self, number, said):
        self.number, self.said = number, said


class Message:
    """A message; its content is a list of parts, its calls are as they are written."""

    def __init__(self, role, content=(), **more):
        self.role, self.content, self.calls = role, list(content), []
        self.name, self.refusal, self.call_id = more.get("name", ""), more.get("refusal", ""), more.get("call_id", "")
        self.is_error, self.function_call = more.get("is_error", False), None


def _shown(message):
    shown = {"content": _content(message.content), "role": message.role}
    more = {
        "function_call": message.function_call,
        "is_error": message.is_error,
        "name": message.name,
        "refusal": message.refusal,
        "tool_call_id": message.call_id,
        "tool_calls": message.calls,
    }
    return shown | {name: item for name, item in more.items() if item}


def _is_text(part):
    return "text" in part


def _content(parts):
    if not parts:
        return ""
    return parts[0]["text"] if len(parts) == 1 and _is_text(parts[0]) else parts


def _has_something(message):
    return bool(message.content or message.refusal or message.calls or message.function_call or message.call_id)


def _response(spoken):
    if len(spoken) > 1:
        return [_shown(item) for item in spoken]
    [message] = spoken
    plain = message.role == "assistant" and not (message.name or message.refusal or message.calls or message.function_call)
    short = not message.content or len(message.content) == 1 and _is_text(message.content[0])
    return _content(message.content) if plain and short else _shown(message)


def text_part(text):
    return {"type": "text", "text": text}


def unknown(kind, node):
    return text_part(f"[{kind}] {written(node)}")


def joined(parts):
    """Parts in which texts that stand side by side are one."""
    found = []
    for part in parts:
        if found and _is_text(part) and _is_text(found[-1]):
            found[-1] = text_part(found[-1]["text"] + part["text"])
        else:
            found.append(part)
    return found


def function(call_id, name, arguments):
    call = {"id": call_id, "type": "function"}
    return call | ({"function": {"name": name, "arguments": arguments}} if name or arguments else {})


class Turn:
    """What one speaker says and calls, until the result of a tool interrupts it."""

    def __init__(self, role):
        self.role, self.said, self.open = role, [], False

    def grow(self):
        if not self.open:
            self.said.append(Message(self.role))
            self.open = True
        return self.said[-1]

    def say(self, part):
        self.grow().content.append(part)

    def call(self, call):
        self.grow().calls.append(call)

    def result(self, content, **more):
        self.said.append(Message("tool", content, **more))
        self.open = False

    def end(self):
        for message in self.said:
            if message.role == "assistant":
                message.content = joined(message.content)
        return self.said


_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?\Z")


def decoded(text):
    """The bytes of base64 with padding; None: it is none."""
    text = text.replace("\r", "").replace("\n", "")
    if not _BASE64.match(text):
        return None
    try:
        return base64.b64decode(text)
    except binascii.Error:
        return None


def _part(kind, **more):
    return {"type": kind} | {name: item for name, item in more.items() if item}


def inline(kind, name, media_type, data):
    found = decoded(data)
    content = data.encode("utf-8") if found is None else found
    return _part(kind, name=name, media_type=brief(media_type), digest=digest_of(content), bytes=len(content))


def at(reading, kind, name, address):
    if address.startswith("data:"):
        head, _, data = address[len("data:") :].partition(",")
        return inline(kind, name, head.removesuffix(";base64"), data)
    clean = addresses.clean(address)
    reading.refer("url", clean)
    return _part(kind, name=name, url=clean)


def file(reading, kind, name, its_id):
    reading.refer("file", its_id)
    return _part(kind, name=name, file_id=brief(its_id))


def kind_of(media_type):
    return {"image": "image_url", "audio": "input_audio", "video": "video_url"}.get(media_type.partition("/")[0], "file")

