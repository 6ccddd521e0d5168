// Runs the portal's worker under Node: node worker.js PAGE-FOLDER. Each line of standard input is a question
// {"what", "argument", "sources": [{"name", "path"}]}, each line of standard output what the worker posted. With a file
// after the folder, it only writes the decompressed program there.
const fs = require("fs"), path = require("path"), readline = require("readline"), vm = require("vm");

class Fake { // a File, as far as the worker reads it
	constructor(name, bytes) { this.name = name; this.bytes = bytes; }
	get size() { return this.bytes.length; }
	slice(from, to) { return new Fake(this.name, this.bytes.subarray(from, to)); }
}
globalThis.FileReaderSync = class {
	readAsArrayBuffer(part) { return part.bytes.buffer.slice(part.bytes.byteOffset, part.bytes.byteOffset + part.bytes.length); }
};
globalThis.postMessage = (message) => {
	fs.writeSync(1, JSON.stringify(message) + "\n");
	if (message.ready) ready();
	if (message.failed) process.exit(1);
};
const ready = () => {
	readline.createInterface({input: process.stdin}).on("line", (line) => {
		const q = JSON.parse(line);
		const sources = q.sources.map((s) => new Fake(s.name, new Uint8Array(fs.readFileSync(s.path))));
		globalThis.onmessage({data: {id: q.id, what: q.what, argument: q.argument, sources}});
	}).on("close", () => process.exit(0));
};
const [folder, program] = process.argv.slice(2);
if (program) {
	WebAssembly.instantiateStreaming = async (response) => {
		fs.writeFileSync(program, Buffer.from(await response.arrayBuffer()));
		process.exit(0);
	};
}
for (const name of ["wasm_exec.js", "worker.js"]) {
	vm.runInThisContext(fs.readFileSync(path.join(folder, name), "utf8"), name);
}
globalThis.onmessage({data: {program: fs.readFileSync(path.join(folder, "verifier.wasm.lzma"))}});
