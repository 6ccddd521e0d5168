// Package portal is the page on which strangers check records in their own browsers.
//
// The page runs package verify, compiled to WebAssembly. The compiled verifier is committed in compressed form
// (page/verifier.wasm.lzma), so that building jurat needs only Go. After a change of its sources, 'go generate
// ./internal/web/portal' rebuilds it. Tests check on every vector that it answers as the command does; 'scripts/test
// release' checks that it was built from this source, to the byte. It runs in a Web Worker, so that the page stays
// responsive and can end it.
//
// The page exists twice: as one file that works from the disk without a network, and as a server serves it. Both have
// a Content-Security-Policy under which they cannot send anything. For the served page a visitor must trust the
// server for that.
//
// # The portal runs the same verifier
//
// The answer is what `jurat verify --json` prints, byte for byte, which a test checks on every vector. The visitor
// can cancel, which ends the worker. The policy of the page allows no connection, no form and no frame, and scripts
// only by digest.
//
// # Only the saved file claims independence from a server
//
// A served page runs whatever program the server sends, whatever the page claims. So the served page says that, and
// how to get the file. The file contains no trust file. A server's trust file is used only if the visitor chooses it,
// after the page has explained what that means.
//
// # The verifier is committed, compressed with LZMA
//
// So `go run` needs only Go, and the page is a third smaller than with gzip, the best that all browsers decompress
// themselves: a second less on a line of 10 Mbit/s. The price is a decoder of 120 lines in the worker, and its half of
// a second, while the visitor chooses a file; the browser compiles meanwhile. A test compares every byte with xz's.
//
// A browser only verifies. Files with the build tag !js, in the packages that it links, are of those who seal, stamp and conduct trials.
package portal

//go:generate go run ./build page
