"use strict";
// The page around the verifier. Everything from a file is inserted as text, never as markup.
document.addEventListener("DOMContentLoaded", () => {
	const $ = (id) => document.getElementById(id);
	const languages = JSON.parse($("texts").textContent);
	const setting = JSON.parse($("setting").textContent);
	let texts = preferred();

	const say = (key, values) => texts[key].replace(/\{(\w+)\}/g, (_, name) => String(values[name]));

	// saying is a text with a reason, which is in English in every language.
	const saying = (key, reason) => texts[key].split(/(\{reason\})/).map((part) => part === "{reason}" ? make("span", {lang: "en"}, line(reason)) : part);

	function preferred() {
		for (const wanted of navigator.languages) {
			const found = languages.find((l) => l.lang === wanted.toLowerCase().split("-")[0]);
			if (found) return found;
		}
		return languages[0];
	}

	// make creates an element: attributes by name, children as elements or text.
	function make(tag, attributes = {}, ...children) {
		const e = document.createElement(tag);
		for (const [name, value] of Object.entries(attributes)) {
			if (name === "on") e.addEventListener(...value);
			else if (value !== false) e.setAttribute(name, value === true ? "" : value);
		}
		e.append(...children.filter((c) => c !== null));
		return e;
	}

	// inert writes out characters that are invisible, move a cursor or change the direction of text. It also writes out the brackets
	// that it uses for this, so that no text can imitate them.
	const inert = (text) => text.replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Cs}\p{Zl}\p{Zp}\u115f\u1160\u3164\uffa0\u2800⟦⟧]/gu, (c) =>
		c === "\n" || c === "\t" ? c : "⟦U+" + c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0") + "⟧");
	const line = (text) => inert(text).replace(/[\n\t]/g, (c) => (c === "\n" ? "⟦U+000A⟧" : " "));

	// The worker. Cancelling ends it and starts another one.
	let worker, ready, waiting = new Map(), asked = 0, program;

	function start() {
		program ??= bytes($("program").textContent);
		const url = URL.createObjectURL(new Blob([$("worker").textContent], {type: "text/javascript"}));
		worker = new Worker(url);
		URL.revokeObjectURL(url);
		waiting = new Map();
		const current = worker;
		ready = new Promise((resolve, reject) => {
			const broken = (reason) => {
				reject(new Error(reason));
				for (const w of waiting.values()) w.reject(new Error(reason));
				state("failed", {reason});
			};
			worker.onerror = (e) => broken(e.message || "the worker does not start");
			worker.onmessage = ({data}) => {
				if (current !== worker) return;
				if (data.ready) {
					performance.mark("ready", {detail: data.took});
					resolve();
				}
				if (data.failed) broken(data.failed);
				if (data.progress) progress(data.progress);
				if (data.reply) answered(data);
			};
		});
		ready.catch(() => {}); // the error was shown already
		worker.postMessage({program: program.slice().buffer});
	}

	function bytes(base64) {
		const text = atob(base64.trim());
		const all = new Uint8Array(text.length);
		for (let i = 0; i < text.length; i++) all[i] = text.charCodeAt(i);
		return all;
	}

	function answered({id, reply}) {
		const w = waiting.get(id);
		waiting.delete(id);
		const {answer, error} = JSON.parse(reply);
		if (error === undefined) w.resolve(answer);
		else w.reject(new Error(error));
	}

	async function ask(what, argument, sources = []) {
		await ready;
		return new Promise((resolve, reject) => {
			waiting.set(++asked, {resolve, reject});
			worker.postMessage({id: asked, what, argument, sources});
		});
	}

	// What the visitor chose.
	let files = [], trust = null, checked = [], under = null, shownState = null;

	function state(key, values = {}) {
		shownState = key && {key, values};
		const said = !key ? [] : values.reason ? saying(key, values.reason) : [say(key, values)];
		const text = said.map((part) => part.textContent ?? part).join("");
		if ($("state").textContent !== text) $("state").replaceChildren(...said);
	}

	function progress({file, read, size}) {
		if (!under) return;
		const percent = size > 0 ? Math.min(100, Math.floor((100 * read) / size)) : 100;
		$("progress").value = percent;
		// Screen readers announce every tenth step; the bar shows each.
		state("working", {name: line(checked[file] ?? ""), percent: percent - (percent % 10)});
	}

	function showChosen() {
		$("chosen").replaceChildren(...files.map((f, i) => make("li", {}, make("bdi", {}, line(f.name)),
			make("button", {type: "button", class: "small", "aria-label": say("remove", {name: line(f.name)}), on: ["click", () => {
				files.splice(i, 1);
				showChosen();
				$("files").focus();
			}]}, "✕"))));
	}

	async function showTrust() {
		const box = $("trusted");
		if (!trust) {
			box.replaceChildren(make("p", {class: "quiet"}, say("no_trust")));
			return;
		}
		const chosen = trust;
		const remove = make("button", {type: "button", class: "small", "aria-label": say("remove", {name: line(trust.name)}), on: ["click", () => {
			trust = null;
			showTrust();
			$("trust").focus();
		}]}, "✕");
		const head = make("p", {}, make("bdi", {}, trust.servers ? say("servers_name") : line(trust.name)), " ", remove);
		let found;
		try {
			found = await ask("trust", {}, [trust.file]);
		} catch (e) {
			if (chosen === trust) {
				trust = null;
				box.replaceChildren(make("p", {class: "wrong"}, ...saying("bad_trust", e.message)));
			}
			return;
		}
		if (chosen !== trust) return;
		box.replaceChildren(head, make("p", {class: "quiet"}, say("holds", found)),
			trust.servers ? make("p", {class: "notice"}, say("servers_hint")) : "",
			make("p", {class: "quiet"}, say("compare")), make("p", {class: "code", id: "fingerprint"}, found.fingerprint));
	}

	function add(list) {
		files.push(...list);
		showChosen();
		state(null);
	}

	$("files").addEventListener("change", () => {
		add($("files").files);
		$("files").value = "";
	});
	$("trust").addEventListener("change", () => {
		const file = $("trust").files[0];
		if (file) trust = {file, name: file.name};
		$("trust").value = "";
		showTrust();
	});
	for (const [name, over] of [["dragenter", true], ["dragover", true], ["dragleave", false], ["drop", false]]) {
		document.addEventListener(name, (e) => {
			e.preventDefault(); // a file dropped beside the target must not replace the page
			$("drop").classList.toggle("over", over);
			if (name === "drop" && !under) add(e.dataTransfer.files);
		});
	}
	if (setting.trust) {
		$("use-servers").hidden = false;
		$("use-servers").addEventListener("click", () => {
			const file = new File([setting.trust], "trust.json");
			trust = {file, name: file.name, servers: true};
			showTrust();
		});
	}

	$("form").addEventListener("submit", async (e) => {
		e.preventDefault();
		if (under) return;
		const list = [...files];
		if ($("pasted").value.trim() !== "") list.push(new File([pasted()], say("pasted")));
		if (list.length === 0) {
			state("nothing");
			$("files").focus();
			return;
		}
		const sources = [...list];
		const source = (file) => (file ? sources.push(file) - 1 : null);
		const argument = {
			files: list.map((_, i) => i), trust: source(trust?.file), crls: [...$("crls").files].map(source),
			checkpoint: source($("checkpoint").files[0]), consistency: source($("consistency").files[0]), entries: source($("entries").files[0]),
			before: $("before").value.trim(), at: $("at").value.trim(), sort: true,
		};
		const mine = under = {};
		busy(true);
		checked = list.map((f) => f.name);
		state("starting");
		try {
			const answer = await ask("verify", argument, sources);
			if (under !== mine) return;
			state("reading");
			results = answer.files;
			await show(true);
			if (under === mine) state("done");
		} catch (e) {
			if (under === mine) state("unchecked", {reason: e.message});
		}
		if (under === mine) busy(false);
	});

	// pasted turns pasted text into a file. Some text fields remove the final line feed that a record has.
	function pasted() {
		const text = $("pasted").value;
		return text.startsWith("{") ? text.trimEnd() + "\n" : text;
	}

	$("cancel").addEventListener("click", () => {
		worker.terminate();
		under = null;
		results = [];
		busy(false);
		state("cancelled");
		start();
		$("check").focus();
	});

	function busy(is) {
		if (!is) under = null;
		$("check").disabled = is;
		$("cancel").hidden = $("progress").hidden = !is;
		$("progress").value = 0;
		if (is) $("results").hidden = true;
		if (is) $("answers").replaceChildren();
	}

	// The results.
	let results = [];
	const tone = {proved: "proved", "not proved": "doubt", refuted: "false"};

	async function show(move) {
		const language = texts;
		const articles = [];
		for (const [i, result] of results.entries()) {
			articles.push(result.report ? report(i, result, await ask("view", {file: i, lang: language.lang})) : unchecked(result));
		}
		if (language !== texts) return;
		$("answers").replaceChildren(...articles);
		$("results").hidden = articles.length === 0;
		performance.mark("found");
		if (move) {
			$("found").focus({preventScroll: true});
			$("found").scrollIntoView(); // to the top: otherwise a browser scrolls only to the heading
		}
	}

	const unchecked = (result) => make("article", {}, make("p", {class: "name"}, make("bdi", {}, line(result.name))),
		make("p", {class: "meaning"}, ...saying("unchecked", result.error)));

	function report(i, result, view) {
		const meaning = view.outcome === "refuted" ? "refuted" : !view.trusted ? "without_trust" : view.outcome === "proved" ? "all_proved" : "not_proved";
		const about = [view.records > 1 ? say("records", {count: view.records}) : "", view.origin ? say("from_log", {origin: line(view.origin), size: view.size}) : ""];
		return make("article", {"data-outcome": view.outcome},
			make("p", {class: "name"}, make("bdi", {}, line(view.name)), " · " + view.kind),
			view.came ? make("p", {class: "came", dir: "auto"}, line(view.came)) : "",
			make("p", {class: "outcome " + tone[view.outcome]}, capital(view.said)),
			make("p", {class: "meaning"}, say(meaning)),
			view.rests ? make("p", {class: "rests", dir: "auto"}, line(view.rests)) : "",
			...(view.wanted ?? []).map((item) => make("p", {class: "wanted", dir: "auto"}, line(item))),
			...(view.changed ?? []).map((item) => make("p", {class: "changed", dir: "auto"}, line(item))),
			make("p", {class: "quiet"}, about.filter(Boolean).join(" ")),
			view.mended ? make("p", {class: "quiet"}, say("mended")) : "",
			make("ul", {class: "lines"}, ...view.guarantees.map((g) => answer(g, view.outcome === "proved" && g.status !== "proved"))),
			...(view.identities ?? []).map((item) => make("p", {class: "identity", dir: "auto"}, line(item))),
			make("h3", {}, say("not_shown")),
			make("ul", {class: "plain"}, ...view.not_shown.map((item) => make("li", {}, item))),
			...(view.statement?.length ? statement(view.statement, "h3") : []),
			view.trusted ? make("p", {class: "quiet"}, say("by_trust") + ": ", make("span", {class: "code"}, view.trust)) : "",
			make("p", {}, button("save", () => save(view.name, result.report))),
			...(view.shown > 0 ? said(i, view) : []));
	}

	const capital = (text) => text.charAt(0).toLocaleUpperCase(texts.lang) + text.slice(1);

	function answer(g, uncounted) {
		const others = (g.others ?? []).map((o) => answer(o, false));
		return make("li", {"data-guarantee": g.guarantee}, make("span", {class: "status " + tone[g.status]}, g.said),
			make("div", {}, make("h3", {}, g.name), make("p", {}, g.asks), ...reason(g), uncounted ? make("p", {class: "reason"}, say("uncounted")) : ""),
			others.length === 0 ? "" : make("details", {}, make("summary", {}, say("others")), make("ul", {class: "lines"}, ...others)));
	}

	function reason(g) {
		const parts = [];
		if (g.reason) parts.push(make("p", {class: "reason", dir: "auto"}, line(g.reason)));
		const which = [g.record ? say("of_record", {record: line(g.record)}) : "", g.more > 0 ? say("also", {count: g.more}) : ""].filter(Boolean);
		if (which.length > 0) parts.push(make("p", {class: "reason"}, which.join(" ")));
		return parts;
	}

	const statement = (paragraphs, heading) => [make(heading, {}, say("statement")),
		make("div", {class: "statement"}, ...paragraphs.map((p) => make("p", {dir: "auto"}, line(p)))),
		make("p", {}, button("copy", (b) => copy(b, paragraphs.join("\n\n"))))];

	function button(key, act) {
		const b = make("button", {type: "button", class: "small"}, say(key));
		b.addEventListener("click", () => act(b));
		return b;
	}

	// copy puts a text on the clipboard. For a page from the disk, browsers may support only the old way.
	async function copy(b, text) {
		try {
			await navigator.clipboard.writeText(text);
		} catch {
			const field = make("textarea", {readonly: true});
			field.value = text;
			document.body.append(field);
			field.select();
			document.execCommand("copy");
			field.remove();
			b.focus();
		}
		b.textContent = say("copied");
		state("copied");
	}

	function save(name, doc) {
		const url = URL.createObjectURL(new Blob([doc + "\n"], {type: "application/json"}));
		make("a", {href: url, download: name.replace(/[^\p{L}\p{N}._-]/gu, "_") + ".report.json"}).click();
		setTimeout(() => URL.revokeObjectURL(url), 60000);
	}

	// The records, page by page. The content of a record is created when it is opened.
	const atOnce = 50;

	function said(i, view) {
		const list = make("div", {class: "records"});
		const more = button("show_more", () => next());
		let from = 0;
		const next = async () => {
			const first = from;
			from = Math.min(view.shown, from + atOnce);
			more.hidden = from >= view.shown;
			const records = await ask("records", {file: i, from: first, count: atOnce, lang: texts.lang});
			list.append(...records.map((r) => record(r, view.shown === 1)));
			if (first > 0) list.children[first].querySelector("summary").focus();
		};
		next();
		return [make("h3", {}, say("said")), make("p", {class: "quiet"}, say("said_hint")),
			view.shown < view.records ? make("p", {}, say("shown", {shown: view.shown, count: view.records})) : "", list, more];
	}

	function record(r, open) {
		const box = make("details", {class: "record", "data-record": r.id}, make("summary", {}, make("span", {class: "number"}, String(r.index + 1)),
			make("span", {}, capital(r.action), " · ", make("bdi", {}, line(r.actor))), make("span", {class: "quiet"}, line(r.claimed))));
		box.addEventListener("toggle", () => {
			if (box.open && box.childElementCount === 1) box.append(inside(r));
		});
		box.open = open;
		return box;
	}

	function inside(r) {
		const model = r.model ? line(r.model) + (r.version ? " (" + line(r.version) + ")" : "") : say("no_model");
		const time = r.proved ? [r.proved, r.authority, r.clock].map(line).join(" · ") : say("no_time");
		const facts = [["actor", line(r.actor) + " (" + r.role + ")"], ["model", model], ["claimed", line(r.claimed)], ["proved_time", time], ["digest", r.digest]];
		return make("div", {class: "inside"},
			make("dl", {}, ...facts.flatMap(([key, value]) => [make("dt", {}, say(key)), make("dd", {}, make("bdi", {}, value))])),
			make("ul", {class: "lines short"}, ...(r.lines ?? []).map((g) => make("li", {}, make("span", {class: "status " + tone[g.status]}, g.said),
				make("div", {}, make("h4", {}, g.name), ...(g.status === "proved" ? [] : reason({...g, record: "", more: 0})))))),
			...r.members.filter((m) => texts.members[m.pointer]).flatMap((m) => exact(texts.members[m.pointer], m.text, m.apart ? "apart" : m.withheld ? "withheld" : "")),
			...(r.statement?.length ? statement(r.statement, "h4") : []),
			later("signed", () => exact("", r.signed)));
	}

	function later(key, content) {
		const box = make("details", {}, make("summary", {}, say(key)));
		box.addEventListener("toggle", () => {
			if (box.open && box.childElementCount === 1) box.append(...content());
		});
		return box;
	}

	// exact shows a text inert, and copies the exact text.
	const exact = (title, text, note) => [
		make("div", {class: "member"}, make("h4", {}, title, note ? make("span", {class: "quiet"}, " · " + say(note)) : ""), button("copy_exact", (b) => copy(b, text))),
		make("pre", {dir: "auto", tabindex: "0", "aria-label": title || say("signed")}, inert(text)),
	];

	// Languages.
	$("language").append(...languages.map((l) => make("option", {value: l.lang, lang: l.lang}, l.language)));
	$("language").addEventListener("change", async () => {
		texts = languages.find((l) => l.lang === $("language").value);
		speak();
		if (!under && results.length > 0) await show(false);
	});

	function speak() {
		document.documentElement.lang = texts.lang;
		document.title = texts.title;
		$("language").value = texts.lang;
		for (const e of document.querySelectorAll("[data-text]")) e.textContent = texts[e.dataset.text];
		if (shownState) state(shownState.key, shownState.values);
		showChosen();
		showTrust();
	}

	$("served").hidden = !setting.served;
	$("saved").hidden = setting.served;
	if (setting.download) $("download").href = setting.download;
	start();
	speak();
});
