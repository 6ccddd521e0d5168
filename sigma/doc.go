// Package sigma proves linear relations between points of P-256, and verifies such proofs, without showing the secret numbers in them.
//
// A [Relation] says: for these points, the prover knows scalars with which each equation holds. An equation has an image, which is a sum
// of points with public factors, and terms, each the product of a secret scalar, a public factor and a point. A Pedersen commitment C to
// a value v with the blinding r is the equation C = v·G + r·H. [Prove] makes a proof from the scalars; [Verify] checks it from the
// relation alone. A proof shows that the prover knew the scalars, and nothing more about them.
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
// how an image comes about. [Relation.Check] refuses relations that say nothing, such as one with a scalar that no equation uses.
//
// # Secrets
//
// Scalars of the prover are handled in constant time: points by filippo.io/nistec, scalars by filippo.io/bigmod. Factors, points and
// proofs are public, and are not. Under js, the code is that of crypto/elliptic and math/big, and scalars are not handled in constant time either: it is
// for verifiers. A prover there must not mind who measures the time. The nonces of a proof come from randomness of the caller hashed together with the scalars and the
// relation, so a broken source of randomness alone reveals nothing, and no nonce serves two relations.
package sigma
