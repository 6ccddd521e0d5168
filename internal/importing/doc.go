// Package importing reads what others wrote about an agent, and makes of it what a recorder seals: results of evaluations, logs,
// conversations and session files of coding agents.
//
//	file, err := importing.Open(path, importing.Unknown)   // recognised by its content, or refused
//	tally, err := importing.Check(ctx, file, options)      // what is new, known, changed or wrong; nothing is sealed
//	tally, err = importing.Seal(ctx, file, options)        // what is new
//
// # It is second hand, and says so
//
// A file is somebody's word. Each act is an observed_span, with the vantage telemetry and the fidelity attributes, signed by the recorder that
// imported it and never by the agent. Its time is that of the import; times in the file are the file's claim, and stand beside it.
// What such a file cannot have, and what this one lacks, stands in missing.
//
// # The reading can be repeated
//
// Beside what was read, an act seals the bytes that it was read from, with the name, length and digest of the file and the place in
// it. Who has the file finds them there; who has not can still read them again.
//
// # An exchange is one act
//
// What was said to the agent since its last answer, and that answer, are one act. Conversations, samples and sessions are chains. Conversations are read by
// package subject, as a jury would read the file itself: this package finds them in large files, one after the other, and knows the
// session files that no conversation is read from elsewhere.
//
// # The same file twice seals nothing twice
//
// The id of a record follows from the agent, the format, the conversation and the entry in it. An entry that grew gives another record for
// what is new. One that was changed is named, and never sealed under another id.
//
// # Nothing is sealed of a file that has a mistake
//
// A file is read to its end before anything is sealed. Mistakes and changed entries are named by place; unless the caller skips them, nothing is
// sealed. A file that changes while it is read is an error.
package importing
