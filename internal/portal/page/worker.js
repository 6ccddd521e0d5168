"use strict";
// The worker runs the verifier, a WebAssembly program, and only passes questions and files to it. It follows
// wasm_exec.js of the Go distribution, which runs Go programs here.
{
	let ask; // the program's function, once it is ready

	globalThis.juratReady = (f) => {
		ask = f;
		took.start = performance.now() - took.began;
		postMessage({ready: true, took});
	};
	globalThis.juratProgress = (file, read, size) => postMessage({progress: {file, read, size}});

	const source = (file) => ({
		name: file.name,
		size: file.size,
		read: (offset, length) => new Uint8Array(new FileReaderSync().readAsArrayBuffer(file.slice(offset, offset + length))),
	});

	const took = {}; // milliseconds of each step before the first question, for the benchmark

	const start = async (packed) => {
		if (typeof DecompressionStream === "undefined") throw new Error("this browser is too old to unpack the verifier: it has no DecompressionStream");
		const go = new Go();
		const began = performance.now();
		const program = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
		const {instance} = await WebAssembly.instantiateStreaming(new Response(program, {headers: {"Content-Type": "application/wasm"}}), go.importObject);
		took.compile = performance.now() - began; // the browser compiles while it decompresses
		took.began = performance.now();
		await go.run(instance); // until the program ends, which should not happen
		throw new Error("the program ended");
	};

	globalThis.onmessage = ({data}) => {
		if (data.program) {
			start(new Uint8Array(data.program)).catch((e) => postMessage({failed: String(e)}));
			return;
		}
		try {
			postMessage({id: data.id, reply: ask(data.what, JSON.stringify(data.argument), data.sources.map(source))});
		} catch (e) {
			postMessage({failed: String(e)});
		}
	};
}
