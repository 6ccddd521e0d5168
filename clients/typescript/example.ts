/**
 * Seals, signs, submits and verifies against a running server: node example.js URL AGENT-TOKEN SUBMITTER-TOKEN KEY TRUST
 *
 * Tokens are those of 'jurat access grant'. KEY is the agent's private key in PEM, whose public half the operator has
 * registered ('jurat keys new'). TRUST is the trust file that you have from the operator ('jurat trust').
 */
import { readFileSync } from "node:fs";
import { Client, Key, Problem, sign, verify } from "./jurat.js";

const [url = "", agentToken, submitterToken, keyFile = "", trustFile = ""] = process.argv.slice(2);
const trust = readFileSync(trustFile);

// What an agent said, signed with its own key.
const agent = new Client(url, agentToken);
const payload = {
	agent_id: "courier-agent-v1", request_id: "route-17", timestamp: "2026-01-31T16:15:00Z", model: "gpt-4.1",
	model_version: "gpt-4.1-2026-01-25", prompt: "Plan the best route. 😀 דּ €", response: "Take the A9.",
	parameters: { temperature: 0.2, top_p: 1.0, seed: 1e21 }, chain_id: "typescript-order-17",
};
const sealed = await agent.deposit(sign(payload, new Key(readFileSync(keyFile))));
const proof = await verify(await agent.bundle("typescript-order-17"), trust);
console.log("record", sealed.payload["record_id"], "is", proof.outcome);

// An agent before the jury.
const submitter = new Client(url, submitterToken);
const submission = await submitter.submit({
	conversation: [{ role: "user", content: "Where is parcel 17?" }, { role: "assistant", content: "It is in Kassel." }],
	agentCard: {
		name: "Parcel agent", description: "Tracks parcels.", version: "1.0.0", url: "https://parcels.example/a2a", protocolVersion: "0.3.0",
		skills: [{ id: "track", name: "Track", description: "Says where a parcel is.", tags: ["parcel"] }],
	},
});
const over = await submitter.wait(submission.id, 600_000, 200);
const verdict = await verify(await submitter.case(submission.id), trust);
console.log("trial", over.id, "came to", over.outcome?.position, "and is", verdict.outcome);

// A refusal says what is wrong.
try {
	await agent.seal({ agent_id: "courier-agent-v1" });
} catch (problem) {
	if (!(problem instanceof Problem)) throw problem;
	console.log("refused", JSON.stringify({ name: problem.name, status: problem.status, field: problem.body.field }));
}
