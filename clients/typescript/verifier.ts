/**
 * Verifies without the command jurat and without a network: by the program of the verification portal (WebAssembly), out of the page that
 * 'jurat portal --out verify.html' writes. It is the verifier of the command, and gives the same report. Compare the page's SHA-256, which
 * 'jurat portal' prints, with that of another copy: whoever changes the page decides what is proved.
 */
import { Worker } from "node:worker_threads";
import type { Report } from "./jurat.js";

type Reply = { ready?: true; failed?: string; id?: number; reply?: string };
type Waiting = { done: (reply: string) => void; failed: (err: Error) => void };

/** What the page's worker has in a browser and lacks in Node: messages of a page, and files that it reads in parts. */
const PROLOGUE = `
const { parentPort } = require("node:worker_threads");
class Part {
	constructor(name, bytes) { this.name = name; this.bytes = bytes; }
	get size() { return this.bytes.length; }
	slice(from, to) { return new Part(this.name, this.bytes.subarray(from, to)); }
}
globalThis.FileReaderSync = class { readAsArrayBuffer(part) { return part.bytes.slice().buffer; } };
globalThis.postMessage = (message) => parentPort.postMessage(message);
parentPort.on("message", (data) => {
	if (data.sources) data.sources = data.sources.map((s) => new Part(s.name, s.bytes));
	globalThis.onmessage({ data });
});
`;

/** Runs the verifier in a thread of its own, one question after the other. End it with close. */
export class Verifier {
	readonly #worker: Worker;
	readonly #waiting = new Map<number, Waiting>();
	readonly #ready: Promise<string>;
	#failed: Error | undefined;
	#last = 0;
	/** Takes the page: the bytes or the text of verify.html. */
	constructor(page: Uint8Array | string) {
		const text = typeof page === "string" ? page : Buffer.from(page).toString("utf8");
		const worker = block(text, "worker"), program = Buffer.from(block(text, "program"), "base64");
		this.#ready = new Promise((done, failed) => this.#waiting.set(0, { done, failed }));
		this.#ready.catch(() => undefined); // verify tells it
		this.#worker = new Worker(PROLOGUE + worker, { eval: true });
		this.#worker.on("message", (m: Reply) => {
			if (m.failed) this.#end(new Error(`the verifier failed: ${m.failed}`));
			else if (m.ready) this.#answer(0, "");
			else if (m.id !== undefined) this.#answer(m.id, m.reply ?? "");
		});
		this.#worker.on("error", (err) => this.#end(err));
		this.#worker.on("exit", () => this.#end(new Error("the verifier has ended")));
		this.#worker.postMessage({ program });
	}
	/** The report of 'jurat verify --json' on a file. It throws if the file or the trust file cannot be read. */
	async verify(file: Uint8Array, trust: Uint8Array): Promise<Report> {
		await this.#ready;
		const sources = [{ name: "file.json", bytes: new Uint8Array(file) }, { name: "trust.json", bytes: new Uint8Array(trust) }];
		const reply = await new Promise<string>((done, failed) => {
			if (this.#failed) return failed(this.#failed);
			this.#waiting.set(++this.#last, { done, failed });
			this.#worker.postMessage({ id: this.#last, what: "verify", argument: { files: [0], trust: 1 }, sources });
		});
		const { answer, error } = JSON.parse(reply) as { answer?: { files: { report?: string; error?: string }[] }; error?: string };
		const one = answer?.files[0];
		if (!one?.report) throw new Error(`verify: ${error ?? one?.error ?? "the verifier gave no report"}`);
		return JSON.parse(one.report) as Report;
	}
	/** Ends the thread. */
	async close(): Promise<void> {
		await this.#worker.terminate();
	}
	#answer(id: number, reply: string): void {
		this.#waiting.get(id)?.done(reply);
		this.#waiting.delete(id);
	}
	#end(err: Error): void {
		this.#failed ??= err;
		for (const waiting of this.#waiting.values()) waiting.failed(this.#failed);
		this.#waiting.clear();
	}
}

/** The content of one of the page's elements that browsers do not execute. */
function block(page: string, id: string): string {
	const begin = `<script type="text/plain" id="${id}">`, from = page.indexOf(begin);
	const to = page.indexOf("</script>", from);
	if (from < 0 || to < 0) throw new Error(`this is no page of 'jurat portal --out verify.html': it has no ${id}`);
	return page.slice(from + begin.length, to);
}
