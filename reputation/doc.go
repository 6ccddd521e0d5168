// Package reputation computes what verified records show about an agent's conduct. The result is a projection: it is never
// a record of its own, and everyone with the same records, trust file, policy and moment of asking gets the same bytes.
// docs/reputation.md has the rules.
//
// A [Gatherer] verifies files and keeps the [Facts]: which sealed records are the agent's, which trials judged them, what
// people decided, and what the log counted. [Facts.View] computes the [View] from them, and [View.Explain] traces each digit
// back to records.
//
// The package needs no clock, file or network.
//
// # One verdict is one observation
//
// A unit is a sealed record, so a record counts once, however often it is tried. But one trial can hear 10,000 records, and
// its verdict is then not 10,000 observations. So a verdict over m records gives each of them the weight 2^-s, with s the
// least number for which 2^s is at least m: together at most 1. If they failed, they weigh together at least what the
// heaviest of them weighs alone. Otherwise the submitter of a record that failed could hide it among idle ones.
//
// # The worst verdict stands
//
// The first verdict on a record counts, and a later one only if it is worse, or fails it among fewer. So submitting again gives nothing, and what
// the result is does not depend on the order in which files are read.
package reputation
