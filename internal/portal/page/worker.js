"use strict";
// The worker holds the verifier, a WebAssembly program, and does nothing but hand it questions and files. It follows
// wasm_exec.js of the Go distribution, by which Go programs run here.
{
	let ask; // the program's, from when it is ready

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

	const took = {}; // milliseconds of what has to happen before the first question, for the benchmark

	const start = async (packed) => {
		const go = new Go();
		const began = performance.now();
		const program = unpack(packed);
		took.unpack = performance.now() - began;
		const {instance} = await WebAssembly.instantiate(program, go.importObject);
		took.compile = performance.now() - began - took.unpack;
		took.began = performance.now();
		await go.run(instance); // until it ends, which it never should
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

	// unpack decodes LZMA, in the form that 'xz --format=lzma' writes, with the size in its header: what browsers bring for
	// decoding needs half as much again. What it makes of damaged bytes is damaged, and no module.
	function unpack(input) {
		let rest = input[0];
		const lc = rest % 9;
		rest = (rest - lc) / 9;
		const lp = rest % 5, pb = (rest - lp) / 5;
		const size = new DataView(input.buffer, input.byteOffset).getUint32(5, true);
		const out = new Uint8Array(size);
		const literalMask = (1 << lp) - 1, positionMask = (1 << pb) - 1;

		const even = (n) => new Uint16Array(n).fill(1024); // probabilities of 1/2
		const isMatch = even(192), isRep = even(12), isRepG0 = even(12), isRepG1 = even(12), isRepG2 = even(12), isRep0Long = even(192);
		const slots = [even(64), even(64), even(64), even(64)], special = even(128), align = even(16);
		const literals = even(0x300 << (lc + lp));
		const lengths = () => ({choice: even(2), low: even(128), mid: even(128), high: even(256)});
		const matchLength = lengths(), repLength = lengths();

		// The range decoder. Its numbers have 32 bits and stand in an array of such, where engines keep them as they are.
		let at = 18;
		const r = Uint32Array.of(0xffffffff, new DataView(input.buffer, input.byteOffset).getUint32(14)); // range and code
		const bit = (p, i) => {
			const probability = p[i], bound = Math.imul(r[0] >>> 11, probability) >>> 0;
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
			if (r[0] < 0x1000000) {
				r[0] <<= 8;
				r[1] = (r[1] << 8) | input[at++];
			}
			return b;
		};
		const direct = (count) => {
			let value = 0;
			for (; count > 0; count--) {
				r[0] >>>= 1;
				const b = r[1] >= r[0] ? 1 : 0;
				if (b) r[1] -= r[0];
				value = (value << 1) | b;
				if (r[0] < 0x1000000) {
					r[0] <<= 8;
					r[1] = (r[1] << 8) | input[at++];
				}
			}
			return value >>> 0;
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
			if (!bit(l.choice, 0)) return tree(l.low, position << 3, 3);
			if (!bit(l.choice, 1)) return 8 + tree(l.mid, position << 3, 3);
			return 16 + tree(l.high, 0, 8);
		};
		const distance = (len) => {
			const slot = tree(slots[Math.min(len, 3)], 0, 6);
			if (slot < 4) return slot;
			const bits = (slot >> 1) - 1, base = (2 | (slot & 1)) << bits;
			if (slot < 14) return base + reverse(special, base - slot, bits);
			return (base >>> 0) + direct(bits - 4) * 16 + reverse(align, 0, 4);
		};

		let state = 0, rep0 = 0, rep1 = 0, rep2 = 0, rep3 = 0;
		for (let n = 0; n < size;) {
			const position = n & positionMask;
			if (!bit(isMatch, (state << 4) + position)) {
				const before = n > 0 ? out[n - 1] : 0;
				const offset = 0x300 * (((n & literalMask) << lc) + (before >> (8 - lc)));
				let symbol = 1;
				if (state >= 7) {
					let match = out[n - rep0 - 1];
					while (symbol < 0x100) {
						const m = (match >> 7) & 1;
						match <<= 1;
						const b = bit(literals, offset + ((1 + m) << 8) + symbol);
						symbol = (symbol << 1) | b;
						if (m !== b) break;
					}
				}
				while (symbol < 0x100) symbol = (symbol << 1) | bit(literals, offset + symbol);
				out[n++] = symbol;
				state = state < 4 ? 0 : state < 10 ? state - 3 : state - 6;
				continue;
			}
			let len;
			if (bit(isRep, state)) {
				if (!bit(isRepG0, state)) {
					if (!bit(isRep0Long, (state << 4) + position)) {
						state = state < 7 ? 9 : 11;
						out[n] = out[n - rep0 - 1];
						n++;
						continue;
					}
				} else {
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
				}
				len = length(repLength, position);
				state = state < 7 ? 8 : 11;
			} else {
				rep3 = rep2;
				rep2 = rep1;
				rep1 = rep0;
				len = length(matchLength, position);
				state = state < 7 ? 7 : 10;
				rep0 = distance(len);
				if (rep0 >= n) throw new Error("the verifier is damaged");
			}
			for (const end = Math.min(n + len + 2, size); n < end; n++) out[n] = out[n - rep0 - 1];
		}
		return out;
	}
}
