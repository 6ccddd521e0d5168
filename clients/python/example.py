"""Seals, signs, submits and verifies against a running server: python3 example.py URL AGENT-TOKEN SUBMITTER-TOKEN KEY TRUST

Tokens are those of 'jurat access grant'. KEY is the agent's private key in PEM, whose public half the operator has
registered ('jurat keys new'). TRUST is the trust file that you have from the operator ('jurat trust').
"""

import json
import pathlib
import sys

import jurat

url, agent_token, submitter_token, key_file, trust_file = sys.argv[1:]
trust = pathlib.Path(trust_file).read_bytes()

# What an agent said, signed with its own key.
agent = jurat.Client(url, agent_token)
payload = {
    "agent_id": "courier-agent-v1", "request_id": "route-17", "timestamp": "2026-01-31T16:15:00Z", "model": "gpt-4.1",
    "model_version": "gpt-4.1-2026-01-25", "prompt": "Plan the best route. 😀 דּ €", "response": "Take the A9.",
    "parameters": {"temperature": 0.2, "top_p": 1.0, "seed": 1e21}, "chain_id": "python-order-17",
}
sealed = agent.deposit(jurat.sign(payload, jurat.Key(key_file)))
report = jurat.verify(agent.bundle("python-order-17"), trust)
print("record", sealed["payload"]["record_id"], "is", report["outcome"])

# An agent before the jury.
submitter = jurat.Client(url, submitter_token)
submission = submitter.submit(
    conversation=[{"role": "user", "content": "Where is parcel 17?"}, {"role": "assistant", "content": "It is in Kassel."}],
    agent_card={
        "name": "Parcel agent", "description": "Tracks parcels.", "version": "1.0.0", "url": "https://parcels.example/a2a", "protocolVersion": "0.3.0",
        "skills": [{"id": "track", "name": "Track", "description": "Says where a parcel is.", "tags": ["parcel"]}],
    },
)
over = submitter.wait(submission["id"], every=0.2)
report = jurat.verify(submitter.case(submission["id"]), trust)
print("trial", over["id"], "came to", over["outcome"]["position"], "and is", report["outcome"])

# A refusal says what is wrong.
try:
    agent.seal({"agent_id": "courier-agent-v1"})
except jurat.Problem as problem:
    print("refused", json.dumps({"name": problem.name, "status": problem.status, "field": problem.field}))
