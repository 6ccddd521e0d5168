"""Calls of A2A: section "a2a/0.3, a2a/1.0" of docs/readings.md."""

import base64
import re

import inclear
import streams
from lenient import Broken, brief, elements, first, member, members, parse, there, word, written
from saidchat import path_of
from spoken import Answer, Message, at, function, inline, text_part, unknown

_SEND, _TASK, _OTHER = "send", "task", "other"
_METHODS = dict.fromkeys(("SendMessage", "SendStreamingMessage", "message/send", "message/stream"), _SEND)
_METHODS |= dict.fromkeys(("GetTask", "CancelTask", "SubscribeToTask", "tasks/get", "tasks/cancel", "tasks/resubscribe"), _TASK)
_SETTINGS = ("blocking", "historyLength", "returnImmediately")
_URL_BASE64 = re.compile(r"(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-]{2}==|[A-Za-z0-9_-]{3}=)?\Z")


def _by_path(path):
    """What the path asks for: its name, what that is, and the task that it names; None: it says nothing."""
    path = path_of(path)
    before, _, last = path.rpartition("/")
    if last in ("message:send", "message:stream"):
        return last, _SEND, ""
    if last in ("extendedAgentCard", "tasks") or last == "card" and before.endswith("/v1"):
        return last, _OTHER, ""
    if "/tasks/" in path and "/pushNotificationConfigs" in path:
        return "pushNotificationConfigs", _OTHER, ""
    if before.endswith("/tasks"):
        task, _, action = last.partition(":")
        return "tasks" + (":" + action if action else ""), _TASK, task
    return None


class _Said:
    """A message or an artifact, which may grow, and the results of tools that stand in it."""

    def __init__(self, role, name=""):
        self.message, self.results, self.open, self.begins = Message(role, name=name), [], False, False

    def grow(self, later):
        content = later.message.content
        if self.open and later.begins:
            last = self.message.content[-1]
            self.message.content[-1] = text_part(last["text"] + content[0]["text"])
            content = content[1:]
        if content:
            self.message.content += content
            self.open = later.open
        self.message.calls += later.message.calls
        self.results += later.results


class _Agent:
    def __init__(self, reading):
        self.reading, self.said, self.known = reading, [], {}
        self.kind, self.is_rpc = None, False

    def request(self):
        reading, call = self.reading, self.reading.call
        by_path = _by_path(call.path)
        request = reading.request() if by_path is None or call.request else None
        if request is None and by_path is None:
            return
        name, self.kind, task = by_path or ("", None, "")
        self.is_rpc = by_path is None or request is not None and "method" in request
        if self.is_rpc:
            name = word(request.get("method"))
            self.kind = _METHODS.get(name, _OTHER)
            request = members(request.get("params"))
        request = request or {}
        reading.named |= inclear.named(method=name)
        settings = {}
        if self.kind == _TASK and not task:
            task = word(request.get("id"))
        for member_name, node in (members(request.get("configuration")) or {}).items():
            if member_name in _SETTINGS:
                settings[member_name] = node
            elif member_name == "acceptedOutputModes":
                reading.named[member_name] = inclear.names(reading.texts(node))
        if "historyLength" in request:
            settings["historyLength"] = request["historyLength"]
        if self.kind == _SEND:
            self._sent(request)
        if task:
            reading.named |= inclear.named(taskId=task)
        reading.parameters(settings)

    def _sent(self, request):
        node = request.get("message")
        if node is None or node.kind not in ("object", "null"):
            return
        self.reading.prompt = []
        if node.kind == "null":
            return
        message = members(node)
        for name in ("messageId", "contextId", "taskId"):
            self.reading.named |= inclear.named(**{name: word(message.get(name))})
        for task in self.reading.texts(message.get("referenceTaskIds")):
            self.reading.refer("task", task)
        self.reading.prompt.append(self._parts("user", message).message)

    def _parts(self, role, own, name=""):
        said = _Said(role, name)
        for node in elements(own.get("parts")):
            self._part(said, node)
        return said

    def _part(self, said, node):
        part, content = members(node) or {}, said.message.content
        file = members(part.get("file"))
        name = word(part.get("filename")) if file is None else ""
        file = part if file is None else file
        name = first(word(file.get("name")), name)
        said.open = "text" in part and part["text"].kind == "string"
        said.begins = said.begins or said.open and not content
        address = first(word(file.get("uri")), word(file.get("url")))
        if said.open:
            content.append(text_part(word(part["text"])))
        elif there(part.get("data")):
            _data(said, part["data"])
        elif "bytes" in file and file["bytes"].kind == "string":
            content.append(_enclosed(name, word(file.get("mimeType")), word(file["bytes"])))
        elif "raw" in file and file["raw"].kind == "string":
            content.append(_enclosed(name, word(file.get("mediaType")), word(file["raw"])))
        elif address:
            content.append(at(self.reading, "file", brief(name), address))
        else:
            content.append(unknown("part", node))

    def answer(self):
        call = self.reading.call
        if call.status >= 300 or not call.response:
            return
        body = streams.Body(call)
        if body.kind == "other":
            return
        for data in [body.data] if body.kind == "whole" else [data for _, data in streams.events(body.data)]:
            try:
                node = parse(data)
            except Broken:
                continue
            if node.kind in ("object", "null"):
                self._event(members(node) or {})

    def _event(self, own):
        if members(own.get("error")) is not None:
            return
        if self.is_rpc and "result" in own:
            own = members(own["result"]) or {}
        if self.kind not in (_SEND, _TASK):
            return
        kind = word(own.get("kind"))
        task, update, artifact = (members(own.get(name)) for name in ("task", "statusUpdate", "artifactUpdate"))
        message = members(own.get("message"))
        message = members(own.get("msg")) if message is None else message
        if task is not None:
            self._task(task)
        elif update is not None:
            self._status(update)
        elif artifact is not None:
            self._artifact(artifact)
        elif message is not None:
            self._hear(message)
        elif kind == "status-update":
            self._status(own)
        elif kind == "artifact-update":
            self._artifact(own)
        elif kind == "message" or not kind and there(own.get("parts")):
            self._hear(own)
        elif kind == "task" or there(own.get("status")):
            self._task(own)

    def _hear(self, message):
        self._put("message", word(message.get("messageId")), self._parts("assistant", message))

    def _put(self, kind, its_id, said):
        if its_id and (kind, its_id) in self.known:
            self.said[self.known[kind, its_id]] = said
            return
        self.known[kind, its_id] = len(self.said)
        self.said.append(said)

    def _task(self, own):
        history = self.reading.objects(own, "history")
        speaks_last = max((n for n, message in enumerate(history) if not _is_agent(message)), default=-1)
        for message in history[speaks_last + 1 :]:
            self._hear(message)
        for artifact in self.reading.objects(own, "artifacts"):
            self._put("artifact", word(artifact.get("artifactId")), self._parts("assistant", artifact, "artifact"))
        self._status(own)

    def _status(self, own):
        message = members(member(own.get("status"), "message"))
        if message is not None:
            self._hear(message)

    def _artifact(self, own):
        artifact = members(own.get("artifact")) or {}
        its_id, said = word(artifact.get("artifactId")), self._parts("assistant", artifact, "artifact")
        appends = "append" in own and own["append"].kind == "true"
        if appends and its_id and ("artifact", its_id) in self.known:
            self.said[self.known["artifact", its_id]].grow(said)
        else:
            self._put("artifact", its_id, said)


def _is_agent(message):
    return word(message.get("role")) in ("agent", "ROLE_AGENT")


def _enclosed(name, media_type, data):
    plain = data.replace("\r", "").replace("\n", "")
    if _URL_BASE64.match(plain):
        data = base64.b64encode(base64.urlsafe_b64decode(plain)).decode()
    return inline("file", brief(name), media_type, data)


def _data(said, node):
    own = members(node) or {}
    name, its_id = word(own.get("name")), word(own.get("id"))
    if said.message.role == "assistant" and name:
        for arguments in ("args", "arguments"):
            if there(own.get(arguments)):
                said.message.calls.append(function(its_id, name, written(own[arguments])))
                return
        if there(own.get("response")):
            text = word(own["response"]) if own["response"].kind == "string" else written(own["response"])
            said.results.append(Message("tool", [text_part(text)], name=name, call_id=its_id))
            return
    said.message.content.append(text_part(written(node)))


def read(reading):
    agent = _Agent(reading)
    agent.request()
    agent.answer()
    said = []
    for one in agent.said:
        if one.message.content or one.message.calls:
            said.append(one.message)
        said += one.results
    if agent.said:
        reading.answers = [Answer(0, said)]
