// Package docket makes what people and programs see of searches: lines of trials and records, tables of them, two
// trials side by side, and the history of an agent.
//
// Keeper keeps the index of words at the end of the log in the background. Lines, Hits, Compare and History turn what
// was found into the answers of package api, for the server and for the command line alike.
//
// # A table is text, and nothing in it is computed
//
// A cell of CSV that begins with = + - @, a tab or a carriage return would be a formula to spreadsheet programs. An
// apostrophe before it makes it text. Numbers that jurat writes itself stay numbers.
package docket
