#!/usr/bin/env python3
"""The facts in the bytes of recorded acts: docs/facts.md.

    python3 facts.py <CALLS

reads a call as JSON from each line (protocol, path, status, request and response in base64) and prints its facts, in canonical form, on a line of its own.
"""

import base64
import json
import re
import sys
import urllib.parse
from collections import namedtuple
from contextlib import suppress
from itertools import accumulate, takewhile

sys.dont_write_bytecode = True

import canonical  # noqa: E402

_STEPS, _DEEPEST, _MOST = 100_000, 10_000, 1000
_STRING = re.compile(rb'"(?:[^"\\\r\n]|\\[^\r\n])*"?')
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[{]|[\]}]', re.DOTALL)
_MARK = b"\xef\xbb\xbf"
_SPACE = re.compile(r"[ \t\r\n]*")
MEMBERS = ("model", "model_version", "parameters", "usage", "finish", "calls", "context_by_reference")

_VERSION = "model message.model response.model modelVersion response.modelVersion"
_USAGE = "choices[].usage x_groq.usage usage message.usage response.usage usageMetadata response.usageMetadata"
_FINISH = (
    "choices[].finish_reason stop_reason message.stop_reason delta.stop_reason candidates[].finishReason response.candidates[].finishReason "
    "promptFeedback.blockReason status incomplete_details.reason response.status response.incomplete_details.reason"
)
_USES = (
    "choices[].message.tool_calls[] choices[].delta.tool_calls[] choices[].message.function_call choices[].delta.function_call output[] item response.output[] "
    "content[] message.content[] content_block candidates[].content.parts[].functionCall candidates[].content.parts[].function_call "
    "response.candidates[].content.parts[].functionCall"
)
_REQUEST = (
    ("previous_response_id", "previous_response_id"),
    ("conversation", "conversation conversation.id"),
    ("prompt", "prompt.id"),
    ("background", "background"),
    ("item", "input[item_reference].id"),
    ("audio", "messages[].audio.id"),
    (
        "file",
        "messages[].content[].file.file_id messages[].content[].file_id messages[].content[].source.file_id messages[].content[].content[].source.file_id "
        "input[].content[].file_id input[].output[].file_id tools[].container.file_ids[] contents[].parts[].fileData.fileUri "
        "contents[].parts[].file_data.file_uri",
    ),
    (
        "url",
        "messages[].content[].image_url messages[].content[].image_url.url messages[].content[].video_url.url messages[].content[].source.url "
        "messages[].content[].content[].source.url input[].content[].image_url input[].content[].file_url input[].output[].image_url",
    ),
    ("container", "container container.id tools[].container"),
    ("vector_store", "tools[].vector_store_ids[]"),
    ("mcp", "mcp_servers[].name tools[mcp].server_label"),
    ("plugin", "plugins[].id"),
    ("data_source", "data_sources[].type"),
    ("context_management", "context_management.edits[].type"),
    ("cachedContent", "cachedContent cached_content"),
)
_ANSWER = (
    (
        "search",
        "candidates[].groundingMetadata.webSearchQueries[] candidates[].groundingMetadata.imageSearchQueries[] "
        "candidates[].groundingMetadata.retrievalQueries[]",
    ),
    (
        "url",
        "citations[] choices[].message.annotations[].url_citation.url choices[].delta.annotations[].url_citation.url output[].content[].annotations[].url "
        "response.output[].content[].annotations[].url item.content[].annotations[].url content[].citations[].url delta.citation.url "
        "candidates[].groundingMetadata.groundingChunks[].web.uri candidates[].groundingMetadata.groundingChunks[].retrievedContext.uri "
        "candidates[].urlContextMetadata.urlMetadata[].retrievedUrl",
    ),
    (
        "file",
        "output[].content[].annotations[].file_id response.output[].content[].annotations[].file_id "
        "choices[].message.annotations[].file_citation.file_id",
    ),
)
_OF_CLIENTS = ("", "function", "custom", "tool_use", "function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call", "computer_call")
_COUNTS = {"prompt": "input_tokens", "completion": "output_tokens", "total": "total_tokens"}
_COUNTS |= {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}

# What a record says in clear.
_LONGEST, NESTED = 128, 8
_NAME = re.compile(r"/?[A-Za-z0-9_.:@$+=~-]+(?:/[A-Za-z0-9_.:@$+=~-]+)*\Z")
_MAIL = re.compile(r"[^/]@[^/]*\.[A-Za-z]{2}")
_COUNTER = re.compile(r"[A-Za-z][A-Za-z0-9_.]*\Z")
_SETTINGS = set(
    """
    temperature top_p topP top_k topK min_p top_a n seed random_seed candidateCount candidate_count choice.count max_tokens
    max_completion_tokens max_output_tokens maxOutputTokens max_tool_calls presence_penalty presencePenalty frequency_penalty
    frequencyPenalty repetition_penalty logprobs top_logprobs responseLogprobs response_logprobs stream stream_options include_usage
    include_obfuscation store background parallel_tool_calls disable_parallel_tool_use truncation service_tier tool_choice function_call
    type mode reasoning reasoning_effort effort summary verbosity text format response_format json_schema strict modalities thinking
    thinking_config thinkingConfig budget_tokens thinking_budget thinkingBudget thinking_level thinkingLevel include_thoughts
    includeThoughts enable_thinking enable_search generation_config generationConfig response_mime_type responseMimeType response_modalities
    responseModalities media_resolution mediaResolution tool_config toolConfig function_calling_config functionCallingConfig output_config
    speed display web_search_options search_context_size search_parameters prompt_cache_retention safe_prompt safety_settings safetySettings
    category threshold blocking returnImmediately historyLength
    """.split()
)
_WORDS = set(
    """
    auto none required any tool function custom allowed_tools minimal low medium high xhigh max concise detailed default flex priority scale
    batch on_demand standard standard_only fast disabled enabled adaptive summarized omitted text json_object json_schema audio image video
    ephemeral 24h in_memory in-memory on off global us eu application/json text/plain text/x.enum AUTO ANY NONE VALIDATED TEXT IMAGE AUDIO
    VIDEO DOCUMENT MINIMAL LOW MEDIUM HIGH ON_DEMAND PROVISIONED_THROUGHPUT OFF MEDIA_RESOLUTION_LOW MEDIA_RESOLUTION_MEDIUM
    MEDIA_RESOLUTION_HIGH HARM_CATEGORY_HARASSMENT HARM_CATEGORY_HATE_SPEECH HARM_CATEGORY_SEXUALLY_EXPLICIT HARM_CATEGORY_DANGEROUS_CONTENT
    HARM_CATEGORY_CIVIC_INTEGRITY BLOCK_NONE BLOCK_ONLY_HIGH BLOCK_MEDIUM_AND_ABOVE BLOCK_LOW_AND_ABOVE
    """.split()
)


def is_plain(text):
    return isinstance(text, str) and len(text) <= _LONGEST and bool(_NAME.match(text)) and not _MAIL.search(text)


def is_counter(name):
    return len(name) <= _LONGEST and bool(_COUNTER.match(name))


Number = namedtuple("Number", "text")  # as it stands in bytes


def in_clear(value, may, depth):
    """What of a value stands in clear. Raises Refused where nothing does."""
    canonical.require(depth > 0 and (not isinstance(value, str) or value in _WORDS), "not in clear")
    if isinstance(value, Number):
        return canonical.as_number(value.text)
    if isinstance(value, list):
        return [in_clear(one, may, depth - 1) for one in value]
    if isinstance(value, dict):
        return kept(value, may, depth - 1)
    return value


def kept(members, may, depth=NESTED):
    """The members of an object that stand in clear."""
    found = {}
    for name, value in members.items():
        if may(name):
            with suppress(canonical.Refused):
                found[name] = in_clear(value, may, depth)
    return found


def named(**texts):
    """Members whose texts are names that stand in clear."""
    return {name: text for name, text in texts.items() if is_plain(text)}


def in_places(texts):
    """Names, each in its place."""
    return [text if is_plain(text) else "" for text in texts]


def reference(kind, what):
    """A reference to context: of one that is no name, of an address and of a question, its kind."""
    return f"{kind}:{what}" if is_plain(what) and kind not in ("search", "url") else kind


_DECODER = json.JSONDecoder(parse_int=Number, parse_float=Number, parse_constant=canonical.no_number)


def _documents(body):
    """The objects and arrays with which a body begins, one after the other."""
    text, at, found = body.removeprefix(_MARK).decode("utf-8", "replace"), 0, []
    deep = text.count("[") + text.count("{") > _DEEPEST
    while True:
        at = _SPACE.match(text, at).end()
        if text[at : at + 1] not in ("{", "[") or deep and _is_too_deep(text, at):
            return found
        try:
            value, at = _DECODER.raw_decode(text, at)
        except (ValueError, canonical.Refused):
            return found
        found.append(value)


def _is_too_deep(text, at):
    """Whether the value that begins with a bracket there is nested too deep."""
    changes = ((bracket[0] in "[{") - (bracket[0] in "]}") for bracket in _BRACKETS.finditer(text, at))
    return any(depth > _DEEPEST for depth in takewhile(bool, accumulate(changes)))


def _objects_in(value):
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, dict)]


def _objects(body):
    """The objects of a body; of one with none, those in the data of its events."""
    found = [one for document in _documents(body) for one in _objects_in(document)]
    if found:
        return found
    for data in _event_data(body):
        if data == b"[DONE]":
            break
        found += [one for document in _documents(data) for one in _objects_in(document)]
    return found


def _event_data(body):
    lines = []
    for line in [*re.split(rb"\r\n|\r|\n", body.removeprefix(_MARK)), b""]:
        field, _, value = line.partition(b":")
        if field == b"data":
            lines.append(value.removeprefix(b" "))
        if not line and lines:
            yield b"\n".join(lines)
            lines = []


def _at(value, places):
    """What stands at places in a value."""
    return [found for place in places.split() for found in _reached(value, place.split("."))]


def _reached(value, steps):
    if not steps:
        return [value]
    name, each, kind = steps[0].removesuffix("]").partition("[")
    if not isinstance(value, dict) or name not in value:
        return []
    if not each:
        return _reached(value[name], steps[1:])
    elements = value[name] if isinstance(value[name], list) else []
    return [found for one in elements if not kind or _word(one, "type") == kind for found in _reached(one, steps[1:])]


def _words(value, places):
    return [text for text in _at(value, places) if isinstance(text, str) and text]


def _word(value, places):
    return next(iter(_words(value, places)), "")


def _object(value):
    return value if isinstance(value, dict) else {}


class _Finding:
    """Collects the facts of a call."""

    def __init__(self, path, request, response):
        self.path, self.body, self.response = path.partition("?")[0].removesuffix("/"), request, response
        documents = _documents(request)
        self.request = documents[0] if len(documents) == 1 and isinstance(documents[0], dict) else None
        self.facts, self.calls, self.references, self.seen = {}, [], {}, set()

    def keep(self, name, text):
        if is_plain(text):
            self.facts[name] = text

    def refer(self, kind, what):
        one = reference(kind, what)
        if len(self.references) < _MOST:
            self.references[one] = True

    def names(self, value, places):
        for kind, where in places:
            for found in _at(value, where):
                if found is True or isinstance(found, str) and found and not found.startswith("data:"):
                    self.refer(kind, "true" if found is True else found)

    def models(self):
        if self.request is not None:
            self.keep("model", _word(self.request, "model") or _model_in(self.path))
            self.asked(self.request)
        elif not self.body and "/responses/" in self.path:
            self.refer("response", self.path.rpartition("/")[2])
        self.answer()

    def gemini(self):
        model, request = _model_in(self.path), self.request
        if self.path.rpartition("/")[2].startswith("v1internal:"):
            model, request = _word(request, "model"), _object(request).get("request")
        self.keep("model", model)
        if isinstance(request, dict):
            self.asked(request)
        self.answer()

    def asked(self, request):
        found = kept(request, _SETTINGS.__contains__)
        if isinstance(request.get("tools"), list) or _at(request, "input[additional_tools].tools[]"):
            found["tools"] = _tools(_objects_in(_at(request, "tools[] input[additional_tools].tools[]")))
        if isinstance(request.get("functions"), list):
            found["functions"] = _tools(_objects_in(request["functions"]))
        self.facts["parameters"] = found
        self.names(request, _REQUEST)

    def answer(self):
        usage, version, finish = {}, "", ""
        for one in _objects(self.response):
            version = (_words(one, _VERSION) or [version])[-1]
            finish = (_words(one, _FINISH) or [finish])[-1]
            for counts in _at(one, _USAGE):
                usage |= {name: count for name, count in _object(counts).items() if count is not None}
            for use in _at(one, _USES):
                self.use(use)
            self.names(one, _ANSWER)
        self.keep("model_version", version)
        self.keep("finish", finish)
        self.facts["usage"] = kept(usage, is_counter, NESTED - 1)

    def use(self, value):
        kind, call, name = _word(value, "type"), _word(value, "call_id id"), _word(value, "function.name custom.name name")
        own, run = kind in _OF_CLIENTS, kind.endswith("_call")
        if not own and not run and not kind.endswith("tool_use") or not name and not run or call and call in self.seen:
            return
        name = name or kind.removesuffix("_call")
        if not own:
            self.refer("tool", name)
            return
        self.seen.add(call)
        if len(self.calls) < _MOST:
            self.calls.append(named(id=call, name=name))

    def mcp(self):
        said = []
        for one in _objects(self.body)[:_MOST]:
            method = _word(one, "method")
            if not method:
                said.append(named(answers=_id(one.get("id"))))
                continue
            says = named(method=method)
            if method == "tools/call":
                meta = _object(_object(one.get("params")).get("_meta"))
                says |= named(tool=_word(one, "params.name"), tool_use_id=_word(meta, "claudecode/toolUseId"))
            said.append(says)
        if said:
            self.facts["parameters"] = said[0] if len(said) == 1 else {"batch": said}

    def a2a(self):
        method, task = _a2a_method(self.path)
        request = self.request
        if request is None and not method:
            return
        request = _object(request)
        if "method" in request or not method:
            method, request = _word(request, "method"), _object(request.get("params"))
        configuration = _object(request.get("configuration"))
        found = {name: request[name] for name in ("historyLength",) if name in request}
        found |= {name: configuration[name] for name in ("blocking", "historyLength", "returnImmediately") if name in configuration}
        found = kept(found, _SETTINGS.__contains__)
        modes = configuration.get("acceptedOutputModes")
        if isinstance(modes, list):
            found["acceptedOutputModes"] = in_places(modes)
        found |= named(method=method, **{name: _word(request, f"message.{name}") for name in ("messageId", "contextId", "taskId")})
        if request.get("message") is None:
            found |= named(taskId=task or _word(request, "id"))
        self.facts["parameters"] = found
        self.names(request, (("task", "message.referenceTaskIds[]"), ("url", "message.parts[].url message.parts[].file.uri")))

    def telemetry(self):
        told = {}
        places = (
            "resourceSpans[].scopeSpans[].spans[].attributes resourceSpans[].scopeSpans[].spans[].events[].attributes "
            "resourceLogs[].scopeLogs[].logRecords[].attributes resourceLogs[].scopeLogs[].logRecords[].body.kvlistValue.values"
        )
        for listed in _at(self.request, places):
            for one in _objects_in(listed):
                told[_word(one, "key")] = _scalar(_object(one.get("value")))

        def first(*names):
            return next((told[name] for name in names if isinstance(told.get(name), str) and told[name]), "")

        asked, either = _text_object(first("llm.invocation_parameters")), first("llm.model_name")
        self.keep("model", first("gen_ai.request.model", "llm.request.model_name") or _word(asked, "model") or either)
        answered = either if _word(_text_object(first("output.value")), "model") == either else ""
        self.keep("model_version", first("gen_ai.response.model", "llm.response.model_name") or answered)
        found, usage = dict(asked), {}
        for key in sorted(told):
            if key.startswith("gen_ai.request."):
                found[key.removeprefix("gen_ai.request.")] = told[key]
            for prefix in ("gen_ai.usage.", "llm.token_count."):
                if key.startswith(prefix) and isinstance(told[key], Number):
                    name = key.removeprefix(prefix)
                    usage[_COUNTS.get(name, name)] = told[key]
        found = kept(found, _SETTINGS.__contains__)
        provider = first("gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system")
        operation = first("gen_ai.operation.name")
        found |= named(operation=operation, provider=provider, agent=first("gen_ai.agent.name", "agent.name"), server=first("server.address"))
        documents = _documents(first("gen_ai.tool.definitions").encode("utf-8", "replace"))
        if len(documents) == 1:
            found["tools"] = _tools(_objects_in(documents[0]))
        if found:
            self.facts["parameters"] = found
        if operation not in ("invoke_agent", "invoke_workflow") and first("openinference.span.kind") != "AGENT":
            self.facts["usage"] = kept(usage, is_counter, NESTED - 1)


def _model_in(path):
    before, _, last = path.rpartition("/")
    model, _, verb = last.partition(":")
    if "/deployments/" in path:
        model = path.partition("/deployments/")[2].partition("/")[0]
    elif last == "invoke":
        model = before.rpartition("/")[2]
    elif not verb:
        return ""
    elif before.endswith("tunedModels"):
        model = f"tunedModels/{model}"
    return urllib.parse.unquote(model)


def _tools(tools):
    names = []
    for tool in tools:
        declared = _at(tool, "functionDeclarations[] function_declarations[]")
        names += [_word(one, "name") for one in declared]
        inner = [f"{_word(tool, 'name')}.{_word(one, 'name')}" for one in _at(tool, "tools[]")]
        names += inner
        if not declared and not inner:
            names.append(_word(tool, "function.name custom.name name server_label type") or "+".join(sorted(tool)))
    return in_places(names)


def _id(value):
    if isinstance(value, Number):
        return canonical.tried(lambda: canonical.number_text(canonical.as_number(value.text))) or ""
    return value if isinstance(value, str) else ""


def _a2a_method(path):
    before, _, last = path.rpartition("/")
    if last in ("message:send", "message:stream", "extendedAgentCard", "tasks") or last == "card" and before.endswith("/v1"):
        return last, ""
    if "/tasks/" in path and "/pushNotificationConfigs" in path:
        return "pushNotificationConfigs", ""
    if before.endswith("/tasks"):
        task, _, action = last.partition(":")
        return f"tasks:{action}".removesuffix(":"), task
    return "", ""


def _text_object(text):
    documents = _documents(text.encode("utf-8", "replace"))
    return _object(documents[0]) if len(documents) == 1 else {}


def _scalar(value):
    if isinstance(value.get("intValue"), str):
        number = canonical.tried(canonical.parse, value["intValue"].encode("utf-8", "replace"))
        return Number(value["intValue"].strip(" \t\r\n")) if isinstance(number, float) else None
    return next((value[kind] for kind in ("stringValue", "intValue", "doubleValue", "boolValue") if kind in value), None)


_READERS = {"gemini.generate": _Finding.gemini, "otlp": _Finding.telemetry, "a2a/0.3": _Finding.a2a, "a2a/1.0": _Finding.a2a}
_READERS |= dict.fromkeys(("openai.chat", "openai.responses", "anthropic.messages"), _Finding.models)


def _reader(protocol):
    return _Finding.mcp if protocol.startswith("mcp/") else _READERS.get(protocol)


def known(protocol):
    return _reader(protocol) is not None


def find(protocol, path, status, request, response):
    """The facts in the bytes of a call; those that they do not say are absent."""
    if any(_has_too_many_values(body) for body in (request, response)):
        return {}
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(_STEPS)  # only here: hostile bytes are nested deep
    try:
        finding = _Finding(path, request, b"" if status >= 300 else response)
        _reader(protocol)(finding)
    finally:
        sys.setrecursionlimit(before)
    found = finding.facts
    if not found.get("usage"):
        found.pop("usage", None)
    if finding.calls:
        found["calls"] = finding.calls
    if finding.references:
        found["context_by_reference"] = list(finding.references)
    return found


def _has_too_many_values(body):
    """By the commas and opening brackets outside of strings. A string ends at the end of a line, too."""
    begin = body.removeprefix(_MARK).lstrip(b" \t\r\n")[:1]
    most = canonical.MAX_VALUES if begin in (b"{", b"[") else 8 * canonical.MAX_VALUES
    return len(body) > most and sum(map(_STRING.sub(b"", body).count, (b",", b"[", b"{"))) > most


def main():
    for line in sys.stdin:
        call = json.loads(line)
        request, response = (base64.b64decode(call.get(name, "")) for name in ("request", "response"))
        print(canonical.form(find(call["protocol"], call.get("path", ""), call.get("status", 0), request, response)).decode("utf-8"))


if __name__ == "__main__":
    main()
