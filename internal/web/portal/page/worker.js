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
		const go = new Go();
		const began = performance.now();
		if (typeof ReadableStream === "undefined") throw new Error("this browser is too old for the verifier: it has no ReadableStream");
		const more = unpacker(packed);
		const program = new ReadableStream({pull: (to) => {
			const part = more(1 << 18);
			if (part.length === 0) to.close();
			else to.enqueue(part);
		}});
		const {instance} = await WebAssembly.instantiateStreaming(new Response(program, {headers: {"Content-Type": "application/wasm"}}), go.importObject);
		took.compile = performance.now() - began; // the browser compiles what is decompressed meanwhile
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

	// unpacker decodes LZMA, as 'xz --format=lzma' writes it to a pipe: with a marker at the end, where a decoder of intact
	// input has nothing left. It returns a function that decodes about so many bytes more, and returns them: none at the end.
	function unpacker(input) {
		const header = new DataView(input.buffer, input.byteOffset);
		const lc = input[0] % 9, lp = (input[0] - lc) / 9 % 5, pb = Math.floor(input[0] / 45);
		const out = new Uint8Array(1 << 26); // much more than the program has
		const literalMask = (1 << lp) - 1, positionMask = (1 << pb) - 1;

		const even = (n) => new Uint16Array(n).fill(1024); // probabilities of 1/2
		const isMatch = even(192), isRep = even(12), isRepG0 = even(12), isRepG1 = even(12), isRepG2 = even(12), isRep0Long = even(192);
		const slots = even(256), special = even(128), align = even(16), literals = even(0x300 << (lc + lp));
		const lengths = () => ({choice: even(2), low: even(128), mid: even(128), high: even(256)});
		const matchLength = lengths(), repLength = lengths();

		// The range decoder. Engines keep the numbers of such an array as 32 bits.
		const r = Uint32Array.of(0xffffffff, header.getUint32(14)); // range and code
		let at = 18; // in the input
		const bit = (p, i) => {
			const probability = p[i], bound = (r[0] >>> 11) * probability;
			let b = 0;
			if (r[1] < bound) {
				r[0] = bound;
				p[i] = probability + ((2048 - probability) >>> 5);
			} else {
				r[0] -= bound;
				r[1] -= bound;
				p[i] = probability - (probability >>> 5);
				b = 1;
			}
			if (r[0] < 0x1000000) shift();
			return b;
		};
		const shift = () => {
			r[0] <<= 8;
			r[1] = (r[1] << 8) | input[at++];
		};
		const direct = (count) => {
			let value = 0;
			for (; count > 0; count--) {
				r[0] >>>= 1;
				const b = r[1] >= r[0] ? 1 : 0;
				if (b) r[1] -= r[0];
				value = (value << 1) | b;
				if (r[0] < 0x1000000) shift();
			}
			return value;
		};
		const tree = (p, offset, bits) => {
			let m = 1;
			for (let i = 0; i < bits; i++) m = (m << 1) | bit(p, offset + m);
			return m - (1 << bits);
		};
		const reverse = (p, offset, bits) => {
			let m = 1, value = 0;
			for (let i = 0; i < bits; i++) {
				const b = bit(p, offset + m);
				m = (m << 1) | b;
				value |= b << i;
			}
			return value;
		};
		const length = (l, position) => {
			if (!bit(l.choice, 0)) return 2 + tree(l.low, position << 3, 3);
			if (!bit(l.choice, 1)) return 10 + tree(l.mid, position << 3, 3);
			return 18 + tree(l.high, 0, 8);
		};
		const distance = (length) => {
			const slot = tree(slots, Math.min(length - 2, 3) << 6, 6);
			if (slot < 4) return slot;
			const bits = (slot >> 1) - 1, base = (2 | (slot & 1)) << bits;
			if (slot < 14) return base + reverse(special, base - slot, bits);
			return base + direct(bits - 4) * 16 + reverse(align, 0, 4);
		};
		let n = 0, ended = false, state = 0, rep0 = 0, rep1 = 0, rep2 = 0, rep3 = 0;
		const literal = () => {
			const offset = 0x300 * (((n & literalMask) << lc) + ((n > 0 ? out[n - 1] : 0) >> (8 - lc)));
			let symbol = 1;
			for (let match = state < 7 ? -1 : out[n - rep0 - 1]; match >= 0 && symbol < 0x100;) {
				const m = (match >> 7) & 1, b = bit(literals, offset + ((1 + m) << 8) + symbol);
				match = m === b ? (match << 1) & 0xff : -1;
				symbol = (symbol << 1) | b;
			}
			while (symbol < 0x100) symbol = (symbol << 1) | bit(literals, offset + symbol);
			return symbol;
		};

		const again = (here) => { // puts one of the last four distances first, and tells whether more than a byte is of it
			if (!bit(isRepG0, state)) return bit(isRep0Long, here);
			let d = rep1;
			if (bit(isRepG1, state)) {
				d = rep2;
				if (bit(isRepG2, state)) {
					d = rep3;
					rep3 = rep2;
				}
				rep2 = rep1;
			}
			rep1 = rep0;
			rep0 = d;
			return 1;
		};
		return (least) => {
			const from = n;
			while (n < from + least && !ended) {
				const position = n & positionMask, here = (state << 4) + position;
				if (!bit(isMatch, here)) {
					out[n] = literal();
					n++;
					state = state < 4 ? 0 : state < 10 ? state - 3 : state - 6;
					continue;
				}
				let count = 1;
				if (!bit(isRep, state)) {
					rep3 = rep2;
					rep2 = rep1;
					rep1 = rep0;
					count = length(matchLength, position);
					state = state < 7 ? 7 : 10;
					rep0 = distance(count);
					if (ended = rep0 === -1) break;
				} else if (again(here)) {
					count = length(repLength, position);
					state = state < 7 ? 8 : 11;
				} else {
					state = state < 7 ? 9 : 11;
				}
				if (rep0 >= n || n + count > out.length) throw new Error("the verifier is damaged");
				for (const stop = n + count; n < stop; n++) out[n] = out[n - rep0 - 1];
			}
			if (ended && (r[1] !== 0 || at !== input.length)) throw new Error("the verifier is damaged");
			return out.subarray(from, n);
		};
	}
}
