// Package verify answers what records prove, to a reader who trusts neither their sender nor the program that made them.
//
// [File] and [Read] take a file as it came: a sealed record, a bundle of records (which may be the case file of a trial), an envelope
// around them, a checkpoint, or an evidence package of an older neighbour. [Options] is what the reader brings along, first of all
// a [trust.Trust]: whose keys, clocks and logs the reader believes. Nothing of it comes from the file, and without it nothing is proved.
//
// The [Report] has an answer for each [Guarantee], proved, not proved or refuted, with the reason; and says what a pass does not
// prove. A chain, the reviews in it and a trial are verified as graphs: what names what, and whether anything is missing.
// Of a trial consensus, threshold and method are run again on the sealed votes.
//
// Nothing here reads a clock, a file system or a network, so that the portal runs the same code in a browser.
// docs/format.md says all of it normatively, under "Verification".
//
// # A second signature is demanded by the reader, not by the record
//
// A forger of the first signature seals a record that names no other signer, so the record's own list of signers cannot demand one. So
// the trust file says which keys sign only together. Where an actor's second key was made before its first, the first never signed
// alone and the demand has no date; the key file says so, and without its second key the first does not sign. Otherwise the demand
// begins a minute after the second key was made, so that acts under way at that moment are not refuted.
//
// # A CA is trusted by role and purpose
//
// A CA in the trust file may speak of certain roles only, and a certificate of an actor must say that it is for documents (RFC 9336)
// and name the actor in one URI of one form. A reader who trusts his company's CA for agents does not thereby let any of its web
// servers be a juror.
//
// # The moment of checking is the reader's
//
// A revocation list is fresh at a moment, or it is not. `verify` reads no clock. So a reader can check again years later, with the lists
// and the moment of the first time, and gets the same answer.
//
// # Revoked is not retired
//
// A retired key (`not_after`) is shown to have signed in time by any trusted clock. A revoked one may be a thief's, who may have had
// the operator's clock as well, so only an independent authority shows that it signed before.
//
// # Links are digests, names are for people
//
// A review or a step in a chain is bound to a record by its digest; ids, names and positions must agree with that and can replace it
// in no proof. The audit model's own examples have names alone: they are sealed as they stand, and their chain is not proved. `jurat
// seal` adds the digest to a review of a record that its log has.
//
// # A review in a file of its own
//
// A review in a file of its own is not held against what it cannot hold: the original is another record. What it says against itself
// still refutes it. A rejection counts against a delivery that does not name it; a later approval overrides it.
//
// # What is missing and what is wrong
//
// Where a chain names itself by `chain_id`, the log has counted its records, and a hole is refuted. A parent request or a
// neighbouring chain may well be in another file: that is not proved, never refuted.
//
// # A bundle is verified as it comes in
//
// What must be known of all records, the checkpoint, stands before them. Records are opened and examined on all cores, and taken in
// the order of the file, so the report is the same on every machine. What rules over several records need is kept: names, digests,
// places, times, and digests of texts in the place of texts. Bundles that are in memory go the same way; there is no second verifier
// that could disagree with the first.
//
// # What a verifier keeps is counted
//
// The sender of a file chooses how much its records name, and how much there is to find against them. Links, and texts of a trial's
// acts, have a bound for the whole file, beyond which nothing is proved of what the records say of each other (`volume`). It stands
// in the format, as two verifiers must agree. A report keeps each reason once. Of more reasons than it has room
// for, it keeps the worst of each record under each guarantee. So no answer changes, and `left_out` counts the missing ones.
//
// # What a reader brings along
//
// [Inputs] reads trust files, revocation lists, checkpoints and proofs. The command and the portal's program both use it, so that
// they read the same files alike.
package verify
