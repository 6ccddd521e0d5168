// Package keys says whose key is whose. A History reads the chain of key events in a log: whose key a public key is, since when, who
// holds it, and what became of it. A Ring keeps the private keys that the installation holds, and makes an actor's key pair when
// the actor first signs.
//
// An actor has at most two keys that sign at a time: its first, and its second, of ML-DSA-65, which withstands quantum computers.
// Each private key is in a file of its own in the installation's file store, as a secret. A key file is a line of JSON that says
// whose key it is, followed by the key as PKCS #8 in PEM, so that `openssl pkey -in FILE` reads it too (ML-DSA-65 since OpenSSL 3.5).
//
// A key may be on a hardware token instead. Its file then has a reference in place of the private key: the public key, its name on the
// token, and the helper that signs with it (see internal/token).
//
// # The log says what became of keys
//
// The log is the truth about keys, and the files follow it. Registering, rotating, retiring and revoking are acts of the operator.
// A new private key is in a file before its act is in the log, and an old one is destroyed after it. Tidy finishes what a crash between
// the two has left. There is no second list of keys that could contradict the log. The transaction that appends a record asks whether
// its keys may sign, so a record cannot slip in behind a revocation. Keys that are made on first use stand in no event until
// something happens to them: most never have a story.
//
// # Keys that sign only together end together
//
// Two keys that sign at the same time sign only together, and what ends one of them ends both. Were one half of a pair replaced
// alone, the half that stays would have to sign with one partner before a day and with another after it. A demand with a date is worth
// nothing against an adversary who forges dates, and second signatures are there against that adversary.
//
// # An old private key is destroyed, not kept
//
// A verifier needs the public half only, which is in the log. A private half that may sign nothing could serve a thief alone.
package keys
