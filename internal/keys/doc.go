// Package keys knows which key belongs to which actor. A History reads the chain of key events in a log: whose key a public key is, since
// when, who holds it, and how it ended. A Ring keeps the private keys that the installation holds. It makes an actor's keys when the actor
// first signs.
//
// An actor has at most two keys that sign at a time: its first, and its second, of ML-DSA-65, which withstands quantum computers. Each
// private key is in a file of its own, which the installation's file store keeps as a secret. A key file is a line of JSON that names the
// key's actor, followed by the key as PKCS #8 in PEM. `openssl pkey -in FILE` reads it, too (ML-DSA-65 since OpenSSL 3.5).
//
// A key may be on a hardware token instead. Its file then holds a reference in place of the private key: the public key, its name on the
// token, and the helper that signs with it (see internal/token).
//
// # The log says what became of keys
//
// The log decides about keys, and the files follow it. Registering, rotating, retiring and revoking are acts of the operator. A new private
// key is in a file before its act is in the log, and an old one is destroyed after it. If a crash comes between the two, Tidy finishes the
// work. There is no second list of keys that could contradict the log. The transaction that appends a record checks whether its keys may
// sign, so no record slips in after a revocation. A key that is made on first use is in no event until it is rotated, retired or revoked.
// Most keys never are.
//
// # Keys that sign only together end together
//
// Two keys that sign at the same time sign only together, and the end of one ends both. If only one of them were replaced, the other would
// sign with one partner before a date and with a new partner after it. Second signatures protect against an adversary who can forge dates,
// so a rule that depends on a date does not protect.
//
// # An old private key is destroyed, not kept
//
// A verifier needs only the public half, which is in the log. A private half that may sign nothing is useful only to a thief.
package keys
