// Package subject reads the agent under trial: what it says it can do (its A2A agent card) and what it did (its
// conversation).
//
// A case is a folder with agent-card.json and conversation.json, or the canonical evidence
// {"agentCard": …, "conversation": …} that a trial carries. The two documents are kept exactly as they were given:
// [Case.Material] is their canonical form with nothing dropped, and what this package understands of them stands
// beside it.
//
// Evidence can also be the records that an agent sealed, verified by whoever submits them (see [FromRecords]): payloads under
// their digests, and messages that are made of them by the rules in docs/format.md. [ReadRecords] makes it of a file.
//
// # Agent card
//
// A2A v1.0 (supportedInterfaces) and v0.3 (protocolVersion, url and preferredTransport at the top). Only the members
// that a juror needs are read; a member of a wrong kind is an error, an unknown member is not.
//
// # Conversation
//
//   - an array of chat messages: role system, developer, user, assistant, tool (or the older function), content that is
//     a string, null or an array of parts, tool_calls or function_call, tool_call_id, name;
//   - an A2A task with its history, v1.0 (ROLE_USER, parts without kind) or v0.3 (user, parts with kind). Data parts
//     that hold a function call (name, args) or its response (name, response) are read as tool calls and results;
//   - either of them wrapped as {"messages": […]}, {"task": {…}} or {"result": {…}}.
//
// Messages are numbered from 1 in the order of the file, system messages included. A task's artifacts and its status
// message follow its history, in that order, unless the history has them already.
//
// # Why not the types of an A2A library
//
// Decoding into a library's structs drops what the structs do not know and loses where in the file a value stood. Here
// the whole document is evidence, a reader of an error wants the line, and a file may come from an attacker; so the
// documents go through [evidence.Canonical] first, and the few members needed are read from a tree that knows its
// positions.
//
// # A prompt that repeats the conversation is shown from where it goes on
//
// Programs send models the whole conversation each time. Read as it stands, everything would be said ten times, and the rules about
// repetition would find what nobody did. Only what was already shown to the letter is left out.
//
// # Sealed records as evidence
//
// An exhibit puts sealed records before the jury.
//
// They are verified first, by the trust of whoever submits them. What is refuted is no evidence, and no trial is held on it.
// What is not proved is put before the jury together with that, and stands in the evidence for good.
//
// # Records are evidence as they are
//
// What an agent sealed goes before the jury as payloads under their digests: whoever has the records finds each in the evidence, and
// nobody has to believe a transcript that somebody made of them. Signatures and time stamps stay in the file of the records, as they
// grow there and evidence must not. What is refuted is no evidence, and there is no flag against that: a jury that finds against a
// forgery, or for it, has judged somebody else. What is not proved is the jury's to weigh, so it stands in the evidence, and not in
// what a juror may be told besides. Findings name records by the number of their message; the program fills that in, as a model that
// has to copy a digest will one day copy another.
package subject
