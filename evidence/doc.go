// Package evidence is the format of sealed evidence: the Agent Evidence Payload, its canonical form, its signatures, and the files in which records
// travel. It needs no clock, no network and no database, and compiles to WebAssembly, in browsers without drafts and sealing.
//
//	draft, err := evidence.ParseDraft(doc)             // what an agent says of its act
//	record, err := draft.Seal(evidence.Sealing{…})     // completed, canonical, signed
//	file, err := record.Marshal()                      // one content, one file
//	record, err = evidence.Open(file)                  // strict: what opens marshals to the same bytes
//	err = record.CheckSignature(0, key)                // with a key that the caller trusts
//
// A record that opens is well-formed, and no more. Its signatures, disclosures, time stamps, certificates and log proof are claims until package verify
// checks them with the reader's own trust. docs/format.md specifies every byte; testdata/vectors has test vectors for other programs.
//
// # A payload is kept as it came
//
// This package reads a payload into a struct and into a table of its members, and signs the table. So no member is lost or normalised on its way through
// Go types. Unknown members are refused; an actor's own members go into `metadata`.
//
// # An action type is inferred in one case only
//
// A payload without `action_type` is a model output and must have all members of one. The one exception is a payload that has a place in a chain and none
// of `model`, `model_version`, `prompt` and `parameters`: it is a `chain_step`, as in the audit model's own example.
//
// # Numbers are refused rather than rounded
//
// RFC 8785 maps 9007199254740993 and 9007199254740992 to one form. A number is accepted if and only if its exact decimal value is that of its canonical
// form.
//
// # Files are strict
//
// A record or bundle file is canonical JSON and one line feed. What opens marshals back to the same bytes, so a signature cannot be carried by two files.
//
// # Roles are in the key
//
// A key belongs to one role, and so does an action type. An agent that writes `juror-gpt` into `agent_id` signs as an agent of that name, not as a juror.
//
// # A recorder is a witness
//
// What a recorder saw an agent do is not what the agent said: the recorder signs it with a key of its own, in a role of its own, and names the agent in
// `observed`. The bytes are the evidence. Members such as `prompt` and `response` are a reading of them, which a verifier repeats. So a record says no
// more than its signer can know.
//
// # A session's context is kept once
//
// An agent sends its whole context with each call. A body may be made of pieces: bytes of its own, and ranges of an earlier body. Ranges of bytes are
// right for every body, also if it is not JSON; a difference of parsed messages would lose what a parser drops. A piece names the digest of the body that
// it copies from, not a record: so it cannot be given other bytes, no circle of copies can exist, and one picture in two conversations is kept once.
//
// # Counters in the log entry
//
// The log counts the records of each chain and the submissions of each case, and hashes these counts. A clerk that opens a second branch of a trial and
// shows the better one leaves a hole in the count. A rerun until the agent passes shows as "submission 3 of this evidence", also to the reader of one case
// file. The log also counts the records of each actor, and what is judged of each: so a bad judgment that is left out is missing in that count.
//
// # Apart is decided before signing
//
// A text that is signed in clear stays part of every proof, and no command can take it out later. A text that may have to be withheld or erased is sealed
// apart from the start, by a flag or by a setting for an actor. A setting that cannot be read stops sealing. Sealing apart is off by default, because a
// proof without its text proves less.
package evidence
