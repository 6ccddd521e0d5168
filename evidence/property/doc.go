// Package property commits to values of records so that properties of them can be proved without showing them, and makes and checks these
// proofs: that a value lies in a range, is or is not in a set, or that a date is at least so many years back.
//
// # Two commitments open with one salt
//
// A member that is sealed apart has a commitment by HMAC in its place. If it is provable, too, a Pedersen commitment C = v·G + r·H stands
// beside that in the signed payload. The [Kind] says how the value becomes the number v, and r follows from the salt of the HMAC. So a disclosure opens
// both, and destroying the salt destroys both. The HMAC stays binding even if discrete logarithms on P-256 become easy. C hides its
// value from everybody for ever, but binds only as long as they are hard.
//
// # What a proof does not say
//
// The value is the one that the agent chose and committed to. No proof shows that it is true.
//
// # Statements
//
// A [Statement] is canonical JSON. It names a record by digest, a member by pointer, and the audience of the proof. All of it goes into the
// challenge, so a proof of one statement does not prove another. It is compiled to a relation: equations between points of
// P-256, with secret scalars; docs/format.md gives the same rules.
//
// # The bytes are those of one draft
//
// Relations and proofs are those of draft-irtf-cfrg-sigma-protocols-03 in its ciphersuite sigma-proofs_Shake128_P256, in the compact form:
// the challenge, then one response for each scalar. The challenge is that of draft-irtf-cfrg-fiat-shamir-03 with SHAKE128. Both are
// drafts, so docs/format.md freezes the bytes. A later draft with other bytes is another format.
//
// # What a verifier checks
//
// The whole relation goes into the challenge: its equations, factors and points. A prover who could choose any of them after the challenge could
// prove what is false (weak Fiat–Shamir). For the same reason a relation has no point that the verifier computed from others: factors say
// how an image comes about. Relations that say nothing are refused, such as one with a scalar that no equation uses.
//
// # Secrets
//
// Scalars of the prover are handled in constant time: points by filippo.io/nistec, scalars by filippo.io/bigmod. Factors, points and
// proofs are public, and are not. Under js, the code is that of crypto/elliptic and math/big, and scalars are not handled in constant time either: it is
// for verifiers. The nonces of a proof come from randomness of the caller hashed together with the scalars and the
// relation, so a broken source of randomness alone reveals nothing, and no nonce serves two relations.
package property
