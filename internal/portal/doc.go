// Package portal is the page on which a stranger checks a record in his own browser.
//
// What checks is package verify, compiled to WebAssembly and committed packed (page/verifier.wasm.gz), so that building jurat
// takes nothing but Go. After a change of anything that it is made of, 'go generate ./internal/portal' makes it anew. Tests
// ask of every vector that it answers as the command does; that it is of this source to the byte, 'scripts/test release' asks. It runs in a Web Worker, so that the page stays alive and can end it.
//
// The page exists twice: as one file that works from the disk without a network, and as a server serves it. Both have a
// Content-Security-Policy under which they can send nothing; only for the file does that rest on nobody's word.
//
// # The portal is the verifier, not a second one
//
// `package verify` is compiled to WebAssembly and run in the visitor's browser; what it answers is what `jurat verify --json`
// prints, byte for byte, which a test asks of every vector. It runs in a worker, which is ended when somebody cancels. The page
// sends nothing: its policy allows no connection, no form and no frame, and scripts only by digest.
//
// # Freedom from a server is claimed for the saved file alone
//
// A page that a server sends runs whatever program the server sends, whatever it says of itself; so the served page says that, and
// how to get the file. The file has no trust in it, and a server's trust file is used only when the visitor chooses it, after he was
// told what that means.
//
// # The verifier is committed, packed with gzip
//
// So that `go run` needs nothing but Go. Browsers unpack gzip by themselves and compile meanwhile. LZMA, which stood here first, is
// 0.8 MB smaller, and needed a decoder of our own in the page. Functions are compiled without inlining, which takes an eighth off,
// but for the arithmetic of signatures.
package portal

//go:generate go run ./build page
