// Package token is the protocol between jurat and a helper that keeps keys: jurat-token for hardware tokens, or another
// program for a key management service. docs/token.md specifies it.
//
// A frame is a length of four bytes, big endian, and as many bytes of canonical JSON. jurat sends requests, the helper
// answers each once, in any order. The helper is a child of jurat, reached over its standard input and output, or listens on a
// Unix socket.
//
// A token here is PKCS #11's word for the device that keeps keys. The package has the name of its documentation and of the
// program jurat-token. Time-stamp tokens are in package timestamp, the tokens of callers in package access.
//
// # Neither side trusts the other
//
// The client takes no public key and no signature at the helper's word. It knows the public key from the log, and verifies
// each signature with it. The server verifies each signature, too, before it leaves: a token that is damaged or attacked may
// give away its key by one wrong signature. What a peer sends is bounded in size, number and time. A peer that breaks the
// protocol is disconnected.
package token
