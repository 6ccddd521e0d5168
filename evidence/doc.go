// Package evidence is the format of sealed evidence: the Agent Evidence Payload, its canonical form, its signatures, and
// the files in which records travel. It needs no clock, no network and no database, and compiles to WebAssembly.
//
//	draft, err := evidence.ParseDraft(doc)             // what an agent says of its act
//	record, err := draft.Seal(evidence.Sealing{…})     // completed, canonical, signed
//	file, err := record.Marshal()                      // one content, one file
//	record, err = evidence.Open(file)                  // strict: what opens marshals to the same bytes
//	err = record.CheckSignature(0, key)                // with a key that the caller trusts
//
// A record that opens is well-formed, and no more. Its signatures, disclosures, time stamps, certificates and log proof are claims until
// package verify checks them with the reader's own trust.
//
// This is the format in brief. docs/format.md specifies every byte; testdata/vectors has test vectors for other programs.
//
// # Canonical form
//
// RFC 8785, restricted so that two documents of different content never share a form. Refused are: a number whose form has another exact
// decimal value (9007199254740993, 1e400), negative zero, a duplicate member, a lone surrogate, invalid UTF-8, and text after the value.
// Unicode is not normalised. A document has at most 32 MiB and 128 levels.
//
// # Payload
//
//	schema               "jurat/evidence/v1"
//	record_id            UUIDv7 in lower case
//	action_type          see below
//	signers              1 to 16 of {alg, key_id}: every signature that the record must have, in order
//	agent_id             name
//	reviewer_id          name
//	request_id           name
//	timestamp            RFC 3339, UTC with Z, up to nanoseconds
//	model, model_version name
//	prompt, context, response, modified_response, changes
//	                     string, object or array
//	parameters           object
//	tools_used           array
//	metadata             object: the only place for members of the actor's own
//	chain_id, previous_agent, next_agent, parent_request_id, original_response_id
//	                     name
//	chain_position       whole number from 1
//	previous_record, case, request_digest
//	                     digest
//	observed             what a recorder saw of an agent's act, and from where: see [Observed]
//	request_body, response_body
//	                     the bytes that it saw: see [ParseBody]
//	saw                  digests, at least one, none twice
//	approval_status      approved, approved_with_modifications, rejected
//	sealed_apart         sorted JSON pointers, at least one
//	provable             1 to 64 of commitment, kind and pointer, sorted by pointer; each pointer in sealed_apart
//
// A name has 1 to 200 bytes, among them one that is not white space, and no control characters. A digest is "sha256:" and 64
// hexadecimal digits in lower case, at least one of them not zero. A null member and a member outside this list are refused.
//
// # Action types
//
//	outputs of a model: model_output recommendation proposal instruction api_call tool_plan message
//	    role agent
//	    required   agent_id request_id timestamp model model_version prompt response parameters
//	    optional   context tools_used
//	    apart      prompt context response tools_used metadata/NAME
//	chain_step
//	    role agent
//	    required   agent_id request_id response chain_position
//	    filled in  timestamp
//	    optional   model model_version prompt context parameters tools_used
//	    apart      prompt context response tools_used metadata/NAME
//	human_review
//	    role reviewer
//	    required   reviewer_id timestamp original_response_id approval_status; and modified_response, if modified
//	    optional   request_id context modified_response changes case
//	    apart      context modified_response changes metadata/NAME
//	delivery
//	    role agent
//	    required   agent_id response saw
//	    filled in  timestamp
//	    optional   request_id context original_response_id case
//	    apart      context response metadata/NAME
//	submission
//	    role submitter
//	    required   agent_id timestamp chain_id chain_position case response
//	    apart      response
//	phase_opening absence consensus_check final_judgment trial_closing
//	    role clerk
//	    required   agent_id timestamp chain_id chain_position previous_record case response
//	evaluation statement, with role juror; judge_opinion, with role judge
//	    required   agent_id request_id timestamp model model_version parameters response
//	               chain_id chain_position previous_record saw case request_digest
//	late_stamp checkpoint_stamp key_event erasure access_event refusal trial_event expiry
//	    role operator
//	    required   agent_id timestamp response
//
//	observed_call observed_tool observed_message observed_span
//	    role recorder
//	    required   agent_id request_id timestamp observed
//	    optional   model model_version prompt context response parameters tools_used request_body response_body
//	    apart      prompt context response tools_used request_body response_body metadata/NAME
//	recorder_event
//	    role recorder
//	    required   agent_id timestamp response
//
// Package operator reads the responses of the operator's acts.
//
// Required and filled in everywhere: schema, record_id, action_type, signers. Optional everywhere: chain_id,
// chain_position, previous_agent, next_agent, parent_request_id, previous_record, saw, metadata, sealed_apart, provable. Everything
// else is forbidden. The response of an act of a trial, of the operator or of a recorder_event is an object. A payload without action_type is a chain_step if it
// has chain_position and none of model, model_version, prompt and parameters, and a model_output otherwise.
//
// # Signatures, imprint and links
//
//	RS256    RSASSA-PKCS1-v1_5 with SHA-256, modulus of 2048 to 8192 bits
//	ES256    ECDSA on P-256 with SHA-256, strict DER, low S
//	Ed25519  pure, 64 bytes; no key of small order
//	ML-DSA-65
//	         FIPS 204, pure, with an empty context, 3309 bytes; no key with t1 = 0
//
// Each signature is over the canonical payload. The payload lists all of them in signers, so none can be stripped. ML-DSA-65 withstands
// quantum computers and is normally the second of two. A key's id is the digest of its SubjectPublicKeyInfo in DER. A time-stamping
// authority stamps the SHA-256 of the concatenated signatures. Records refer to each other by the digest of the payload.
//
// # Commitments
//
// A member that is sealed apart is replaced by
//
//	"hmac-sha256:" hex( HMAC-SHA256( salt, pointer ‖ 0x00 ‖ canonical value ) )
//
// with 32 random bytes of salt. sealed_apart lists its JSON pointer, so no other data passes for a commitment. A [Disclosure] opens it.
// provable can have a second commitment beside it, which the same disclosure opens: see package property.
//
// # Files
//
// A record file is a canonical JSON object of certificates, digest, disclosures, log, payload, properties, signatures and timestamps,
// and a line feed. A bundle file is one of checkpoint, format ("jurat/bundle/v1") and records in log order, and a line
// feed. The entry of a record in a log is the canonical JSON object of actor, actor_seq, case, case_seq, chain, chain_seq, payload,
// signatures, subject and subject_seq, where payload is a digest, actor, case, chain and subject are hashes that reveal nothing to a
// reader who does not know the names, and the others are the log's own counts.
//
// # A payload is kept as it came
//
// This package reads a payload into a struct and into a table of its members, and signs the table. So no member is lost or normalised
// on its way through Go types. Unknown members are refused; an actor's own members go into `metadata`.
//
// # An action type is inferred in one case only
//
// A payload without `action_type` is a model output and must have all members of one. The one exception is a payload that has a place in
// a chain and none of `model`, `model_version`, `prompt` and `parameters`: it is a `chain_step`, as in the audit model's own example.
//
// # Numbers are refused rather than rounded
//
// RFC 8785 maps 9007199254740993 and 9007199254740992 to one form. A number is accepted if and only if its exact decimal value is
// that of its canonical form.
//
// # Files are strict
//
// A record or bundle file is canonical JSON and one line feed. What opens marshals back to the same bytes, so one content has one
// file, and a signature cannot be carried by two.
//
// # Roles are in the key
//
// A key belongs to one role, and so does an action type. An agent that writes `juror-gpt` into `agent_id` signs as an agent of that
// name, not as a juror.
//
// # A recorder is a witness
//
// What a recorder saw an agent do is not what the agent said: the recorder signs it with a key of its own, in a role of its own, and names
// the agent in `observed`. The bytes are the evidence. Members such as `prompt` and `response` are a reading of them, which a verifier
// repeats. So a record says no more than its signer can know.
//
// # A session's context is kept once
//
// An agent sends its whole context with each call. A body may be made of pieces: bytes of its own, and ranges of an earlier body. Ranges of
// bytes are always right, also for bodies that are not JSON; a difference of parsed messages would lose what a parser drops. A piece names
// the digest of the body that it copies from, not a record: so it cannot be given other bytes, no circle of copies can exist, and the same
// picture in two conversations is kept once.
//
// # Counters in the log entry
//
// The log counts the records of each chain and the submissions of each case, and hashes these counts. A clerk that opens a second
// branch of a trial and shows the better one leaves a hole in the count. A rerun until the agent passes shows as "submission 3 of this
// evidence", also to the reader of one case file. The log also counts the records of each actor, and what is judged of each: so a
// bad judgment that is left out is missing in the count of its subject.
//
// # Apart is decided before signing
//
// A text that is signed in clear stays part of every proof, and no command can take it out later. A text that may have to be withheld or
// erased is sealed apart from the start, by a flag or by a setting for an actor. A setting that cannot be read stops sealing. Sealing
// apart is off by default, because a proof without its text proves less.
package evidence
