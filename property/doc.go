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
// challenge, so a proof of one statement does not prove another. [Statement.relation] compiles it to a relation of package sigma;
// docs/format.md gives the same rules.
package property
