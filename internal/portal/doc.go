// Package portal is the page on which a stranger checks a record in his own browser.
//
// What checks is package verify, compiled to WebAssembly and committed packed (page/verifier.wasm.gz), so that building jurat
// takes nothing but Go. After a change of anything that it is made of, 'go generate ./internal/portal' makes it anew. Tests
// ask of every vector that it answers as the command does; that it is of this source to the byte, 'scripts/test release' asks. It runs in a Web Worker, so that the page stays alive and can end it.
//
// The page exists twice: as one file that works from the disk without a network, and as a server serves it. Both have a
// Content-Security-Policy under which they can send nothing; only for the file does that rest on nobody's word.
package portal

//go:generate go run ./build page
