"""What a record says in clear: docs/facts.md."""

import re

from canonical import Refused, as_number

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


def is_setting(name):
    return name in _SETTINGS


def is_counter(name):
    return len(name) <= _LONGEST and bool(_COUNTER.match(name))


class Number:
    """A number as it stands in bytes."""

    def __init__(self, text):
        self.text = text

    def value(self):
        return as_number(self.text)


class Nothing(Exception):
    """Nothing of a value stands in clear."""


def in_clear(value, may, depth):
    """What of a value stands in clear."""
    if depth == 0 or isinstance(value, str) and value not in _WORDS:
        raise Nothing
    if isinstance(value, Number):
        try:
            return value.value()
        except Refused as err:
            raise Nothing from err
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
            try:
                found[name] = in_clear(value, may, depth)
            except Nothing:
                pass
    return found


def named(**texts):
    """Members whose texts are names that stand in clear."""
    return {name: text for name, text in texts.items() if is_plain(text)}


def names(texts):
    """Names, each in its place."""
    return [text if is_plain(text) else "" for text in texts]


def reference(kind, what):
    """A reference to context: of one that is no name, of an address and of a question, its kind."""
    return f"{kind}:{what}" if is_plain(what) and kind not in ("search", "url") else kind
