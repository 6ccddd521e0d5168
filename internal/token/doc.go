// Package token signs with keys that a helper keeps: jurat-pkcs11 for hardware tokens, or another program for a key management service.
// docs/token.md specifies what they say to each other: one line of JSON for each request and each answer, over the helper's standard input and
// output. A token here is PKCS #11's word for the device that keeps keys; time-stamp tokens are in package timestamp.
//
// # Nothing is taken at the helper's word
//
// The public key is known from the log, and each signature is verified with it before it is used. What a
// helper sends is bounded in size and time. A helper that breaks the protocol or does not answer is killed. One that ended is started again at the
// next request, unless it ended because of its PIN: each further try could lock the token.
package token
