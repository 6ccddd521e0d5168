// Package verify checks what records prove. Its reader trusts neither the sender nor the program that made the records.
//
// [File] and [Read] take a file as it came: a sealed record, a bundle of records (which may be the case file of a trial), a SCITT
// statement or a checkpoint. [Options] is what the reader brings, above all a [trust.Trust]:
// the keys, clocks and logs that the reader believes. None of this comes from the file. Without it nothing is proved.
//
// The [Report] has an answer for each [Guarantee]: proved, not proved or refuted, with the reason. It also says what a pass does not
// prove. Chains, their reviews and trials are verified as graphs: which record names which, and whether one is missing. For a trial,
// verify runs consensus, threshold and method again on the sealed votes.
//
// This package reads no clock, file system or network, so the portal runs the same code in a browser. docs/format.md specifies
// verification normatively, under "Verification".
//
// # Levels are few, and the weakest part decides
//
// A proof on the operator's word fails whole if the operator lies, whether about a key, a clock or the log. So a [Level] names the weakest of the three,
// and the [Basis] says which of them are better. The operator runs the jurors and keeps their keys, so a trial is proved on the operator's word, while
// what the agent said can be proved independently: the basis has the keys of each role apart.
//
// # A second signature is demanded by the reader, not by the record
//
// A forger of the first signature can seal a record that names no other signer. So the record's own list of signers cannot demand a second
// one. Instead the trust file says which keys sign only together. If an actor's second key was made before its first, the first key never
// signed alone, and the demand has no date. The key file names the second key, and the first key does not sign without it. Otherwise the
// demand begins one minute after the second key was made, so that acts in progress at that moment are not refuted.
//
// # A CA is trusted by role and purpose
//
// The trust file can limit a CA to certain roles. An actor's certificate must say that it is for documents (RFC 9336), and must name the
// actor in one URI of one form. So a reader who trusts a company's CA for agents does not accept the company's web servers as jurors.
//
// # The moment of checking is the reader's
//
// Whether a revocation list is fresh depends on the moment of checking. verify reads no clock: the reader gives the moment. So a reader
// can check again years later, with the same lists and the same moment, and gets the same answer.
//
// # Revoked is not retired
//
// Any trusted clock can show that a retired key (`not_after`) signed in time. A revoked key may be a thief's, and the thief may have had
// the operator's clock as well. So only an independent authority can show that a revoked key signed before it was revoked.
//
// # Links are digests, names are for people
//
// A review or a step in a chain is bound to a record by the record's digest. Ids, names and positions must agree with it, but they replace
// it in no proof. The audit model's own examples have names only: jurat seals them as they are, and does not prove their chain. `jurat
// seal` adds the digest to a review if its log has the reviewed record.
//
// # A review in a file of its own
//
// A review in a file of its own cannot be compared with its original, which is another record. Only contradictions within the review
// refute it. A rejection counts against a delivery that does not name it. A later approval overrides a rejection.
//
// # What is missing and what is wrong
//
// If a chain has a `chain_id`, the log has counted its records, and a gap is refuted. A parent request or a neighbouring chain may be in
// another file. If it is missing, the link is not proved, but never refuted.
//
// # A bundle is verified as it comes in
//
// The checkpoint applies to all records, so it stands before them. verify opens and examines records on all cores, and takes the results
// in the order of the file. So the report is the same on every machine. verify keeps what the rules over several records need: names,
// digests, places, times, and digests instead of texts. Bundles in memory are verified in the same way: there is no second code path that
// could give another answer.
//
// # What a verifier keeps is counted
//
// The sender of a file controls how many links its records have and how many findings there are. Links, and the texts of a trial's acts,
// have a bound for the whole file. Beyond it, nothing is proved of what the records say of each other (`volume`). The format states the
// bound, because two verifiers must agree. A report keeps each reason once. If there are more reasons than it can hold, it keeps the worst
// of each record under each guarantee. So no answer changes, and `left_out` counts the missing ones.
//
// # Whom a record judges
//
// A log counts the records of each actor and the judgments about each actor, and hashes both counts with its entries. So a reader of all
// entries knows how many judgments there are about an agent, and which of them are at hand. The ledger counts by the same rules.
//
// A final judgment judges the agent on trial. A review judges the agent on trial if it is in the chain of a trial, or on a record of one.
// On an act that a recorder saw and that says so, it judges the agent that was seen, because the recorder is a witness. Otherwise it
// judges the actor of the record that it reviews: also on what earlier recorders sealed, because a log cannot take back how it has
// counted. A key event that revokes a key is an incident, and is about the key's actor. No other record judges an actor.
//
// The agent on trial is named by the submission, the first record of the trial's chain: if it submits sealed records, by the first record
// that an agent made; otherwise by the agent's card. The records come first, because their signatures were verified, and a card can give
// any name. If the submission is sealed apart, the log does not know the name, and its judgment has no subject.
//
// # A recorder is a witness
//
// That a recorder's record is whole and its own is for other guarantees to say. This one says from where the recorder saw, and whether a
// reader can see the same: the bytes hash to what is stated, and the facts that are stated stand in them. What was said is a view of the
// bytes, and nothing to be proved. It does not say that the recorder saw everything. Telemetry is the agent's own account. It is never
// proved, whatever it says. So are values that somebody else had parsed.
//
// # Bodies are read in the order of a file
//
// A body may copy from bodies before it in the file. They are kept in a window of a fixed size, so the answer is the same on every
// machine, and a copy costs no more than its bytes. How much all records of a file copy is bounded, because a small file could copy for
// hours.
//
// # Two recorders of one exchange
//
// [Together] compares what two recorders saw of the same exchange of messages: one before the agent that asked, one before the agent that
// answered. An exchange is known by the digests of its request and of its answer, as the bytes passed. One of them is not enough: a
// request can be sent twice, and many answers are alike. A body without bytes is like every other, so an exchange that has one is not
// compared.
//
// A record takes part if its signatures are right, its keys are those that the trust file gives the recorder, and nothing refutes what it
// says it saw. Its window is from when the recorder says that the exchange began to when an authority proves that the record existed. The
// windows of both records have a moment in common; clocks may differ by trust.MaxSkew. Two records count as two witnesses only if
// different logs hold them and different keys signed them, and no owner is named behind both. That the owners do not act together is for
// the reader to know. The same request with another answer may be a second attempt. It is said, and refutes nothing.
//
// # Carried proofs and quotations
//
// A proof about a value that is sealed apart is held against commitments that are part of signed payloads, and is not signed itself. So
// one that does not hold says nothing about the record, and a missing one shows nothing: only a reader who demands a proof learns from
// that. Quotations of jurors are searched in the evidence as JSON, without roles, parts or tools, so that a second verifier needs a page
// for it and not a reader of conversations. What it refuses no reader of a conversation finds in the message either.
package verify
