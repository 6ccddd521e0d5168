// Package stamping gets time stamps. A Client asks one time-stamping authority over HTTP (RFC 3161, section 3.4) and takes no answer on
// trust: it verifies what comes back in full, by roots that the operator configured, before anybody else sees it. Stampers are all
// authorities that stamp what is sealed, the built-in one among them. A Timekeeper gets the time stamps that records wait for, renews
// those that end, and has authorities outside stamp the log's checkpoints.
//
// # An authority's silence stops nobody
//
// Where an authority outside does not answer, the record is sealed and waits for it, and that it waits is stored in the transaction
// that appends it. A stamp that comes later is added in one transaction with the act (`late_stamp`) that says so: otherwise a crash
// in between would leave a stamp that nobody accounts for, or an act about a stamp that is not there. A stamp whose place was taken
// by another process voids the whole transaction, since the act is signed by then and speaks of it; the act is then made anew about
// what is left. The act itself never waits, nor does one about a stamped checkpoint: there would be acts about acts for ever. The
// built-in authority always stamps these two.
//
// # One token for many is a setting, and not the rule
//
// With `--batch-tokens` the built-in authority stamps the root of a hash tree over all records that are sealed and wait when a
// transaction begins, and each gets an evidence record that verifies alone. That spares a signature for each record and costs room.
// Whoever is about to commit closes the tree, has it stamped and writes the evidence records of all: 2 µs each, as DER is written
// from its end, where every length is known when it is wanted. When one cost 9 µs, each caller wrote its own while the transaction
// before was under way, which woke everybody twice, and was a fifteenth slower than this by the time that they cost 2. A record that
// has its token before it is in the queue is the simpler thing, and stays the rule. Acts about time stamps, which never wait, keep a
// token of their own.
//
// # The operator's clock is tied to another one through the log
//
// `jurat log anchor` has an authority outside stamp the signed checkpoint, and logs the token (`checkpoint_stamp`). One token then
// says of every record under that checkpoint that it existed by then, also where the operator's clock alone stamped the record: that
// clock can be ahead of the true time, but from one stamped checkpoint to the next it can be set back by no more than lies between
// them. Proofs are against the earliest stamped checkpoint over what is proved, as it says most. The acts themselves do not count as
// something to be stamped, or a schedule would never come to rest.
package stamping
