// Package subject reads the agent under trial: what it says it can do (its A2A agent card) and what it did (its
// conversation).
//
// A case is a conversation in one of several forms and, if there is one, the agent's card: a folder, a file, one of
// many in a file, which [ReadTranscripts] finds, or the canonical evidence that a trial carries. What was brought stays complete: [Case.Material] is
// its canonical form. The fields that this package extracts stand beside it. docs/case.md is the specification.
//
// Evidence can also be records that an agent sealed, verified by their submitter (see [FromRecords]): payloads under
// their digests, and messages derived from them by the rules in docs/format.md. [ReadSealed]
// verifies and reads a file of such records.
//
// # Agent card
//
// A2A v1.0 (supportedInterfaces) and v0.3 (protocolVersion, url and preferredTransport at the top). The package reads
// only the members that a juror needs. A member of a wrong kind is an error, an unknown member is not.
//
// # Conversation
//
// [Form] lists the forms. [New] finds the form by its structure, and the evidence names it, so that reading evidence
// never depends on what later versions find. Chat messages and A2A tasks are not named, because earlier evidence does
// not name them:
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
// # A form shows itself in the structure
//
// Only what one form alone can have counts, such as a type of a part. What was said never counts: whoever brings a conversation could
// otherwise choose how it is read by what stands in it. Signs of two forms are refused, and the caller names one.
//
// # Why not the types of an A2A library
//
// Decoding into a library's structs drops unknown members and loses the positions of values. Here the whole document
// is evidence, an error must name the line, and a file may come from an attacker. So [evidence.Canonical] checks the
// documents first, and the few members needed are read from a tree that knows its positions.
//
// # A prompt that repeats the conversation is shown without the repetition
//
// Programs send models the whole conversation with each call. Unless repetitions are left out, the jury would read
// everything many times, and the rules about repetition would find faults that the agent did not commit. Only text
// that was already shown, and is identical, is left out.
//
// A recorder sees all calls of a program: attempts that repeat, conversations side by side, and programs that leave out
// what is long ago. So its records are compared with every beginning of a conversation that was shown, and not only with
// the record before. What a prompt says that the agent had said, and no earlier record has, is shown as that. A call to which the provider
// gave no id is the same call with the id that the program gave it.
//
// # Which call of a model a use of a tool carries out
//
// A recorder sees both apart: what the model asked for, and what the agent's program then asked a server. Programs offer tools to a model
// under names of their own, as mcp__SERVER__TOOL, so what follows the last "__" also names the tool. A program may state the model's id of
// the call. If it is that of a call for another tool or with other arguments, that is said: the program did something else than its model
// asked for. Without an id, the latest call for the tool with the same arguments is the one, which is likely and no more.
//
// # Sealed records as evidence
//
// What an agent sealed goes before the jury as payloads under their digests. A reader who has the records finds each
// of them in the evidence, and need not trust a transcript. Signatures and time stamps stay in the file of the
// records, because they change there and evidence must not change.
//
// The records are verified first, by the submitter's trust. Refuted records are not accepted as evidence, and no
// option changes that: a jury that judges a forgery judges the wrong agent. What is not proved is for the jury to
// weigh, so the evidence itself holds it. Findings refer to records by the number of a message. The program adds the
// record's digest, because models make mistakes when they copy digests.
package subject
