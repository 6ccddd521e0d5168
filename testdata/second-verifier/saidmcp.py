"""Calls of MCP: section "mcp/…" of docs/readings.md."""

import addresses
import inclear
import streams
from canonical import Refused, form, parse
from lenient import Broken, Node, Reader, brief, elements, first, member, members, quoted, string, there, together, value, values, word, written, written_bytes
from shapes import digest_of
from spoken import Answer, Message, function, inline, text_part, unknown

_MAX_MESSAGES = 1000
_MARK = b"\xef\xbb\xbf"


class _Rpc:
    """A message of JSON-RPC."""

    def __init__(self, own):
        self.own, self.method = own, word(own.get("method"))
        self.params = members(own.get("params")) or {}
        self.id = written(own.get("id"))
        self.use = word(member(self.params.get("_meta"), "claudecode/toolUseId"))

    def call_id(self):
        return first(brief(self.use), "mcp:" + brief(self.id))

    def described(self):
        if not self.method:
            return inclear.named(answers=self.id.strip('"'))
        if self.method == "tools/call":
            return inclear.named(method=self.method, tool=word(self.params.get("name")), tool_use_id=self.use)
        return inclear.named(method=self.method)


def read(reading):
    asks, answers = ("tool", "assistant") if reading.call.path == "/server" else ("assistant", "tool")
    asked = []
    if streams.stripped(reading.call.request):
        asked = _messages(reading.call.request)
        _request(reading, asked, asks, answers)
    said = []
    for message in _answer(reading.call):
        if message.method:
            said.append(_said(message, answers))
        else:
            to = next((one for one in asked if one.method and one.id == message.id and one.id), None)
            said.append(_result(reading, to, message, asks, answers))
    if said:
        reading.answers = [Answer(0, said)]


def _request(reading, asked, asks, answers):
    reading.prompt = [_said(one, asks) if one.method else _result(reading, None, one, asks, answers) for one in asked]
    described = [one.described() for one in asked]
    if described:
        reading.said["parameters"] = described[0] if len(described) == 1 else {"batch": described}


def _messages(data):
    found = []
    for node in values(data.removeprefix(_MARK)):
        batch = node.value if node.kind == "array" else [node]
        if all(one.kind == "object" or one.kind == "null" and node.kind == "array" for one in batch):
            found += [_Rpc(members(one) or {}) for one in batch]
    return found[:_MAX_MESSAGES]


def _answer(call):
    if not streams.stripped(call.response):
        return []
    if streams.Body(call).kind != "stream":
        return _messages(call.response)
    found = []
    for _, data in streams.events(call.response):
        if streams.stripped(data):
            found += _messages(data)
        if len(found) > _MAX_MESSAGES:
            break
    return found[:_MAX_MESSAGES]


def _put(pairs):
    data = together(pairs.items())
    return Node("object", list(pairs.items()), data)


def _said(message, role):
    if not message.id or role != "assistant":
        text = message.method + " " + written(message.own.get("params"))
        return Message(role, [text_part(text.rstrip(" "))], name=brief(message.method))
    said = Message(role)
    if message.method == "tools/call":
        more = {name: node for name, node in message.params.items() if name not in ("name", "arguments", "_meta")}
        if more:
            said.content = [text_part(written(_put(more)))]
        name, arguments = word(message.params.get("name")), written(message.params.get("arguments")) or "{}"
    else:
        name = message.method
        arguments = written(_put({name: node for name, node in message.params.items() if name != "_meta"}))
    said.calls = [function(message.call_id(), name, arguments)]
    return said


def _result(reading, to, message, asks, answers):
    said = Message(asks if to is None else answers)
    if to is not None and answers == "tool":
        said.call_id = to.call_id()
    result, failure = message.own.get("result"), message.own.get("error")
    if there(failure) or result is None:
        said.is_error = True
        said.content = [text_part("error: " + first(written(failure), "(it has neither a result nor an error)"))]
        return said
    own, method = members(result) or {}, to.method if to is not None else ""
    if method == "tools/call" and ("content" in own or "structuredContent" in own):
        said.content = _tool_content(reading, own)
        said.is_error = "isError" in own and own["isError"].kind == "true"
    elif method == "tools/list":
        said.content = [text_part(_listed(own))]
    else:
        if method == "sampling/createMessage":
            reading.said["model_version"] = word(own.get("model"))
        said.content = [text_part(written(result))]
    return said


def _tool_content(reading, own):
    structured, content = written(own.get("structuredContent")), []
    for one in reading.objects(own, "content"):
        part = _part(one)
        content.append(part)
        if structured and "text" in part and written_bytes(part["text"].encode("utf-8")) == structured:
            structured = ""
    if structured:
        content.append(text_part("[structuredContent] " + structured))
    for name in sorted(set(own) - {"content", "structuredContent", "isError", "_meta"}):
        content.append(text_part(f"[{name}] {written(own[name])}"))
    return content


def _part(own):
    kind = word(own.get("type"))
    if kind == "text":
        return text_part(word(own.get("text")))
    if kind in ("image", "audio"):
        return inline({"image": "image_url", "audio": "input_audio"}[kind], "", word(own.get("mimeType")), word(own.get("data")))
    if kind == "resource":
        inside = members(own.get("resource")) or {}
        address = addresses.clean(word(inside.get("uri")))
        if "blob" in inside:
            return inline("file", brief(address), word(inside.get("mimeType")), word(inside["blob"]))
        return text_part(f"[resource {address}]\n{word(inside.get('text'))}")
    return unknown(brief(kind), _put(own))


def _listed(own):
    lines = []
    for tool in elements(own.get("tools")):
        try:
            digest = digest_of(form(parse(tool.raw)))
        except Refused:
            digest = digest_of(tool.raw)
        shown = {"name": string(word(member(tool, "name"))), "digest": string(digest)}
        if member(tool, "description") is not None:
            shown["description"] = member(tool, "description")
        lines.append(written(_put(shown)))
    if there(own.get("nextCursor")):
        lines.append("[more tools follow]")
    return "\n".join(lines) if elements(own.get("tools")) or not lines else "\n" + "\n".join(lines)
