// Package sealer seals what passes a relay: one record for each call, in the role of a recorder. Package relay passes the bytes on and
// asks this package, package evidence/observed makes the payload, and the log seals it.
//
// # A call is in the journal before it is forwarded
//
// The [Recorder] writes an intent into a journal before anything is forwarded. In closed mode the intent is durable then. In open mode it is written, and
// synced while the call is under way: the end of the process loses nothing, and the end of the machine can lose the calls of the last milliseconds. The
// intent has the id that the record will have, and no text. If the process dies, the next one finds the intents without an end, looks for their records, and
// seals for each that has none that the call was lost in a crash. So each call that began is in the log exactly once.
//
// # The end of an answer waits for the record
//
// In closed mode, the relay holds the end of an answer back until the record is in the log. A call that cannot be sealed is broken off, and
// its intent stays in the journal, with which it is sealed later as recorder_cut. In open mode everything passes. What was missed is counted
// by agent and minute, and sealed as soon as sealing works again.
//
// # Which conversation a call belongs to
//
// The caller can name a chain. Otherwise the call continues the conversation whose messages it begins with, the last answer included, or whose
// answer it names by id. Otherwise its trace names it, and otherwise a chain begins. A design with one chain for each process was refused: a process
// holds many conversations at a time, and a jury tries one. If two conversations look the same, a call that could continue either begins a chain
// of its own, so that chains never mix.
//
// # What is taken in can be erased
//
// Bodies and what is read from them are sealed apart, unless the configuration says otherwise. The journal and the spool keep
// no text once a record is sealed.
package sealer
