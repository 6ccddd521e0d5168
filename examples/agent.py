"""A small agent: it asks a model twice, by OpenAI's Chat Completions, with nothing but Python's standard library."""

import json
import os
import urllib.request

URL = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1") + "/chat/completions"
messages = [{"role": "system", "content": "You are the service desk of a bookshop. Answer in one sentence."}]


def ask(text):
    messages.append({"role": "user", "content": text})
    body = json.dumps({"model": os.environ.get("MODEL", "gpt-5-mini"), "messages": messages}).encode()
    key = os.environ.get("OPENAI_API_KEY", "")
    request = urllib.request.Request(URL, body, {"Content-Type": "application/json", "Authorization": "Bearer " + key})
    with urllib.request.urlopen(request) as response:
        answer = json.load(response)["choices"][0]["message"]
    messages.append({"role": "assistant", "content": answer["content"]})
    print(answer["content"])


ask("Which hours are you open on Saturday?")
ask("And can I return a book without a receipt?")
