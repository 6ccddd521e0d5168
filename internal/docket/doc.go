// Package docket makes what people and programs see of a log: lines of trials and records, tables of them, two
// trials side by side, chains of recorded calls, and what the log has about one agent. Pages, the command line and the
// API show the same.
//
// Keeper keeps the index of words at the end of the log in the background. Lines, Hits, Compare and History turn what
// was found into the answers of package api, for the server and for the command line alike.
//
// # A table is text, and nothing in it is computed
//
// A cell of CSV that begins with = + - @, a tab or a carriage return would be a formula to spreadsheet programs. An
// apostrophe before it makes it text. Numbers that jurat writes itself stay numbers.
//
// # The messages are those of the jury
//
// A recorded chain is read as package subject reads it for a trial: each message once, however often it was sent
// again. So what a person reads is what jurors would get, and message numbers are the same.
//
// # Nothing is verified here
//
// What stands here is what the records say. Whether they are whole, and whose they are, is for package verify to say.
// What the records about an agent prove is for package reputation: [ReadConduct] hands them on as the bundles that a
// stranger gets, and reads these alone, however long the log is.
package docket
