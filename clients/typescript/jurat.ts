/**
 * A client for jurat: seal what an agent said, sign it with one's own key, put an agent before the jury, verify what comes back.
 * It needs Node 20 or later and nothing else: node:crypto signs, and the command jurat verifies. docs/api.md describes the
 * server, docs/format.md the records.
 */
import { execFile } from "node:child_process";
import { createHash, createPrivateKey, createPublicKey, randomBytes, sign as signBytes, type KeyObject } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const MAX_BYTES = 33_554_432, MAX_DEPTH = 128;

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type Members = { [name: string]: Json };

/** The value has no canonical form, or the record is not what was signed. The message says where and why. */
export class Refused extends Error {}

/** What the server has against a request (RFC 9457). */
export class Problem extends Error {
	readonly name: string;
	constructor(readonly status: number, readonly body: { type?: string; title?: string; detail?: string; field?: string; hint?: string }) {
		const name = (body.type ?? "").split(":").pop() ?? "";
		super([`${status} ${name}: ${body.detail ?? body.title ?? ""}`, body.field && `field: ${body.field}`, body.hint && `hint: ${body.hint}`].filter(Boolean).join("; "));
		this.name = name;
	}
}

// Canonical JSON: RFC 8785, restricted as in docs/format.md, section "Canonical form".

const TOKEN = /[ \t\n\r]*(?:([{}[\]:,])|(")|(-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)|(true|false|null))/uy;

/** Reads JSON that has a canonical form. A member twice, or a number that a double cannot hold exactly, is Refused. */
export function parse(document: string | Uint8Array): Json {
	const text = typeof document === "string" ? document : utf8(document);
	if (Buffer.byteLength(text) > MAX_BYTES) throw new Refused(`more than ${MAX_BYTES} bytes`);
	let end = 0;
	const rest = (): string => { // of a string, whose first quotation mark is read
		const start = end - 1;
		while (end < text.length && text[end] !== '"') end += text[end] === "\\" ? 2 : 1;
		end++;
		try {
			return JSON.parse(text.slice(start, end)) as string;
		} catch {
			throw new Refused(`not JSON: the string at character ${start}`);
		}
	};
	const next = (): RegExpExecArray => {
		TOKEN.lastIndex = end;
		const token = TOKEN.exec(text);
		if (!token) throw new Refused(`not JSON at character ${end}`);
		end = TOKEN.lastIndex;
		return token;
	};
	const mark = (wanted: string): string => {
		const token = next()[1] ?? "";
		if (!token || !wanted.includes(token)) throw new Refused(`not JSON at character ${end}: want one of ${wanted}`);
		return token;
	};
	const value = (token: RegExpExecArray, depth: number): Json => {
		if (token[2] !== undefined) return rest();
		if (token[3] !== undefined) return exact(token[3]);
		if (token[4] !== undefined) return JSON.parse(token[4]) as Json;
		if (depth === MAX_DEPTH) throw new Refused(`nested more than ${MAX_DEPTH} deep`);
		if (token[1] === "[") {
			const list: Json[] = [];
			for (let first = next(); !(first[1] === "]" && list.length === 0); first = next()) {
				list.push(value(first, depth + 1));
				if (mark(",]") === "]") break;
			}
			return list;
		}
		if (token[1] !== "{") throw new Refused(`not JSON at character ${end}`);
		const members: Members = Object.create(null) as Members; // so that __proto__ is a name like any other
		for (let first = next(), begun = false; begun || first[1] !== "}"; first = next(), begun = true) {
			if (first[2] === undefined) throw new Refused(`not JSON at character ${end}: want the name of a member`);
			const name = rest();
			if (name in members) throw new Refused(`member ${JSON.stringify(name)} is there twice`);
			mark(":");
			members[name] = value(next(), depth + 1);
			if (mark(",}") === "}") break;
		}
		return members;
	};
	const whole = value(next(), 0);
	if (!/^[ \t\n\r]*$/.test(text.slice(end))) throw new Refused(`something follows the value at character ${end}`);
	canonical(whole);
	return whole;
}

function utf8(bytes: Uint8Array): string {
	try {
		return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
	} catch {
		throw new Refused("not UTF-8");
	}
}

/** The number that a text stands for, if its canonical form has the same value. */
function exact(text: string): number {
	const value = Number(text);
	if (!Number.isFinite(value) || decimal(text) !== decimal(String(value)) || text.startsWith("-") && value === 0) {
		throw new Refused(`number ${text.slice(0, 40)}: its canonical form would have another value; send it as a string`);
	}
	return value;
}

/** A decimal number without zeros at its ends: equal texts are equal values. */
function decimal(text: string): string {
	const [, sign = "", whole = "", part = "", power = "0"] = /^(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/.exec(text) ?? [];
	const digits = (whole + part).replace(/^0+/, "");
	const bare = digits.replace(/0+$/, "");
	return bare === "" ? "0" : `${sign}${bare}e${BigInt(power) - BigInt(part.length) + BigInt(digits.length - bare.length)}`;
}

/** The canonical form of a value, in bytes. Signatures and digests are over these. */
export function canonical(value: Json): Buffer {
	const form = Buffer.from(formOf(value, "", 0), "utf8");
	if (form.length > MAX_BYTES) throw new Refused(`more than ${MAX_BYTES} bytes`);
	return form;
}

function formOf(value: Json, at: string, depth: number): string {
	if (typeof value === "string") return formOfText(value, at);
	if (typeof value === "number") {
		if (!Number.isFinite(value) || Object.is(value, -0)) throw new Refused(`${at || "/"}: ${Object.is(value, -0) ? "negative zero" : value} has no canonical form`);
		return String(value); // ECMAScript's own form, which RFC 8785 takes
	}
	if (value === null || typeof value === "boolean") return String(value);
	if (typeof value !== "object") throw new Refused(`${at || "/"}: ${typeof value} is nothing that JSON has`);
	if (depth === MAX_DEPTH) throw new Refused(`nested more than ${MAX_DEPTH} deep`);
	if (Array.isArray(value)) return `[${Array.from(value, (v, i) => formOf(v, `${at}/${i}`, depth + 1)).join(",")}]`;
	// JavaScript compares strings by their UTF-16 code units, as RFC 8785 sorts names.
	return `{${Object.keys(value).sort().map((name) => `${formOfText(name, at)}:${formOf(value[name] as Json, `${at}/${name}`, depth + 1)}`).join(",")}}`;
}

function formOfText(text: string, at: string): string {
	if (/\p{Surrogate}/u.test(text)) throw new Refused(`${at || "/"}: a surrogate without its other half`);
	return JSON.stringify(text);
}

/** SHA-256 as records write it. */
export const digest = (data: Uint8Array): string => "sha256:" + createHash("sha256").update(data).digest("hex");

// Signing with one's own key.

const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n; // of P-256

/** A private key, P-256 or Ed25519, in PEM (PKCS #8). */
export class Key {
	readonly alg: "ES256" | "Ed25519";
	readonly id: string;
	readonly #key: KeyObject;
	constructor(pem: string | Buffer) {
		this.#key = createPrivateKey(pem);
		const kind = this.#key.asymmetricKeyType === "ec" ? this.#key.asymmetricKeyDetails?.namedCurve : this.#key.asymmetricKeyType;
		if (kind !== "prime256v1" && kind !== "ed25519") throw new Refused(`key: ${kind}: this client signs with P-256 and Ed25519 alone; 'jurat seal --sign-only' knows more kinds`);
		this.alg = kind === "ed25519" ? "Ed25519" : "ES256";
		this.id = digest(createPublicKey(this.#key).export({ type: "spki", format: "der" }));
	}
	/** The signature over a message, as records have it. */
	sign(message: Uint8Array): Buffer {
		if (this.alg === "Ed25519") return signBytes(null, message, this.#key);
		const raw = signBytes("sha256", message, { key: this.#key, dsaEncoding: "ieee-p1363" });
		const s = BigInt("0x" + raw.subarray(32).toString("hex"));
		const low = s > ORDER / 2n ? ORDER - s : s; // the one form that records have
		const body = Buffer.concat([integer(raw.subarray(0, 32)), integer(Buffer.from(low.toString(16).padStart(64, "0"), "hex"))]);
		return Buffer.concat([Buffer.from([0x30, body.length]), body]);
	}
}

/** An INTEGER in DER. */
function integer(bytes: Uint8Array): Buffer {
	let from = 0;
	while (from < bytes.length - 1 && bytes[from] === 0) from++;
	const bare = Buffer.from(bytes.subarray(from));
	const whole = (bare[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.from([0]), bare]) : bare;
	return Buffer.concat([Buffer.from([2, whole.length]), whole]);
}

/** A UUIDv7 (RFC 9562). */
export function newRecordID(): string {
	const raw = Buffer.concat([Buffer.alloc(6), randomBytes(10)]);
	raw.writeUIntBE(Date.now(), 0, 6);
	raw[6] = (raw[6]! & 0x0f) | 0x70;
	raw[8] = (raw[8]! & 0x3f) | 0x80;
	return raw.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

/** A record as its file has it (docs/format.md, section "Record file"). */
export type SealedRecord = { digest: string; payload: Members; signatures: string[]; timestamps: Json[]; [member: string]: Json };

/** Completes a payload (docs/format.md, "As actors send it") and signs it. Gives the record, for Client.deposit. */
export function sign(payload: Members, ...keys: Key[]): SealedRecord {
	const step = "chain_position" in payload && !["model", "model_version", "prompt", "parameters"].some((name) => name in payload);
	const action = payload["action_type"] ?? (step ? "chain_step" : "model_output");
	const filled: Members = action === "chain_step" || action === "delivery" ? { timestamp: new Date().toISOString() } : {};
	const whole: Members = { action_type: action, schema: "jurat/evidence/v1", record_id: newRecordID(),
		signers: keys.map((key) => ({ alg: key.alg, key_id: key.id })), ...filled, ...payload };
	const form = canonical(whole);
	return { digest: digest(form), payload: whole, signatures: keys.map((key) => key.sign(form).toString("base64")), timestamps: [] };
}

// The server.

/** A submission; docs/api.md says what else it has. */
export type Submission = { id: string; state: "queued" | "under_way" | "over" | "broken_off" | "cancelled"; reason?: string; next?: string;
	outcome: null | { position: "safe_pass" | "needs_review" | "unsafe_fail"; by: "jury" | "person"; open: boolean }; [member: string]: unknown };

const pause = (milliseconds: number): Promise<void> => new Promise((done) => setTimeout(done, milliseconds));

/** Sends requests to one server. A POST carries an Idempotency-Key, so that repeating it makes nothing twice. */
export class Client {
	readonly #url: string;
	constructor(url: string, readonly token = "", readonly attempts = 3, readonly timeout = 60_000) {
		const at = new URL(url);
		if (at.protocol !== "https:" && (at.protocol !== "http:" || !["127.0.0.1", "[::1]", "localhost"].includes(at.hostname))) {
			throw new Error(`${url}: want https://, or http:// to this machine: the connection must protect the token`);
		}
		this.#url = url.replace(/\/+$/, "");
	}
	/** Has the installation seal a payload with the key that it keeps for the token's owner. A program that may end in
	 * between keeps an Idempotency-Key of its own, and repeats the call with it. */
	seal(payload: Members, key?: string): Promise<SealedRecord> {
		return this.#json("POST", "/v1/records", canonical(payload), key);
	}
	/** Sends a record of sign, and gives it as the server sealed it. */
	async deposit(signed: SealedRecord): Promise<SealedRecord> {
		const sealed = await this.#json<SealedRecord>("POST", "/v1/records", Buffer.concat([canonical(signed), Buffer.from("\n")]));
		for (const part of ["digest", "payload", "signatures"]) {
			if (!canonical(sealed[part] ?? null).equals(canonical(signed[part] ?? null))) throw new Refused("the server answered with another record than was signed");
		}
		return sealed;
	}
	/** Puts an agent before the jury: {conversation, agentCard}, {records}, {chainId} or {recorded}. */
	submit(evidence: Members, key?: string): Promise<Submission> {
		return this.#json("POST", "/v1/submissions", canonical(evidence), key);
	}
	/** The submission as it stands: state, outcome, verdict, result. */
	submission(id: string): Promise<Submission> {
		return this.#json("GET", `/v1/submissions/${encodeURIComponent(id)}`);
	}
	/** Waits for the verdict. An error says why there will be none, or that there is none yet. */
	async wait(id: string, milliseconds = 1_800_000, every = 1000): Promise<Submission> {
		for (const until = Date.now() + milliseconds; ; await pause(every)) {
			const now = await this.submission(id);
			if (now.state === "over") return now;
			if (now.state === "cancelled" || now.state === "broken_off" && now.next === undefined) throw new Error(`${id}: ${now.state}: ${now.reason ?? ""}`);
			if (Date.now() >= until) throw new Error(`${id} is ${now.state} after ${milliseconds} ms; it goes on, and you can wait again`);
		}
	}
	/** The case file of a trial: keep it, it can be verified offline. */
	case(id: string): Promise<Buffer> {
		return this.#bytes("GET", `/v1/submissions/${encodeURIComponent(id)}/case`);
	}
	/** All records of a chain, or of what a record belongs to. */
	bundle(chain: string): Promise<Buffer> {
		return this.#bytes("GET", `/v1/chains/${encodeURIComponent(chain)}`);
	}
	/** The installation's trust file. Compare its fingerprint over another channel before you rely on it. */
	trust(): Promise<Buffer> {
		return this.#bytes("GET", "/v1/trust");
	}
	async #json<T>(method: string, path: string, body?: Buffer, key?: string): Promise<T> {
		return JSON.parse((await this.#bytes(method, path, body, key)).toString("utf8")) as T;
	}
	async #bytes(method: string, path: string, body?: Buffer, key?: string): Promise<Buffer> {
		const headers: { [name: string]: string } = this.token ? { Authorization: `Bearer ${this.token}` } : {};
		if (body) Object.assign(headers, { "Content-Type": "application/json", "Idempotency-Key": key ?? newRecordID() });
		for (let left = this.attempts - 1; ; left--) {
			let answer: Response, content: Buffer;
			try { // the server never redirects: following would carry the token to another host
				answer = await fetch(this.#url + path, { method, headers, redirect: "manual", signal: AbortSignal.timeout(this.timeout), ...(body && { body: new Uint8Array(body) }) });
				content = Buffer.from(await answer.arrayBuffer());
			} catch (err) { // no answer, or half of one
				if (left <= 0) throw err;
				await pause(1000);
				continue;
			}
			if (answer.ok) return content;
			if (left <= 0 || answer.status !== 429 && answer.status !== 503) throw problemOf(answer, content);
			await pause(1000 * Math.min(Number(answer.headers.get("Retry-After") ?? 1) || 1, 60));
		}
	}
}

function problemOf(answer: Response, content: Buffer): Problem {
	try {
		return new Problem(answer.status, JSON.parse(content.toString("utf8")) as Problem["body"]);
	} catch {
		return new Problem(answer.status, { title: `${answer.statusText}: not an answer of jurat` });
	}
}

/** What jurat verify --json prints. */
export type Report = { outcome: "proved" | "not proved" | "refuted"; [member: string]: unknown };

/** Verifies a record, bundle or case file by a trust file, offline: with the command jurat, or with a Verifier of
 * verifier.ts. The trust file must not come from the sender of the file. */
export async function verify(file: Uint8Array, trust: Uint8Array, by: string | { verify(file: Uint8Array, trust: Uint8Array): Promise<Report> } = "jurat"): Promise<Report> {
	if (typeof by !== "string") return by.verify(file, trust);
	const folder = await mkdtemp(join(tmpdir(), "jurat-"));
	try {
		await writeFile(join(folder, "file.json"), file);
		await writeFile(join(folder, "trust.json"), trust);
		return await new Promise<Report>((done, failed) => {
			execFile(by, ["verify", "--json", "--trust", "trust.json", "file.json"], { cwd: folder, maxBuffer: 1 << 28 }, (err, stdout, stderr) => {
				if (err && err.code !== 1 && err.code !== 3) failed(new Error(`${by} verify: ${stderr || err.message}`)); // 1: refuted, 3: not proved
				else done(JSON.parse(stdout) as Report);
			});
		});
	} finally {
		await rm(folder, { recursive: true });
	}
}
