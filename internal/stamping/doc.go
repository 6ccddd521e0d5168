// Package stamping gets time stamps. A Client asks one time-stamping authority over HTTP (RFC 3161, section 3.4). It verifies each answer
// in full, against roots that the operator configured, before it returns the token. Stampers are all authorities that stamp new records,
// the built-in one included. A Timekeeper gets the time stamps that records wait for, renews stamps before they end, and lets outside
// authorities stamp the log's checkpoints.
//
// # An authority's silence stops nobody
//
// If an outside authority does not answer, the record is sealed and waits for its stamp. The transaction that appends the record also
// stores that it waits. A stamp that comes later is added in one transaction with the act (`late_stamp`) that describes it. Otherwise a
// crash between the two would leave a stamp that no act describes, or an act about a missing stamp. If another process has added one of the
// stamps first, the whole transaction fails, since the signed act names that stamp. The ledger then makes a new act about the rest. The act
// itself never waits for a stamp, and neither does an act about a stamped checkpoint: otherwise acts about acts would never end. The
// built-in authority always stamps these two.
//
// # A qualified authority must be one at each time stamp
//
// An authority that was added with `--qualified` keeps what the trusted lists say of its provider. Each token is judged on receipt by the
// rule that a reader's verification applies (package verify/trust), and refused unless it is a qualified time stamp. When the
// lists are out of date, the authority is not asked: its tokens would be refused, and may cost money. That is like its silence: the record
// is sealed and waits. AddQualified takes newer lists.
//
// # One token for many is a setting, and not the rule
//
// With `--batch-tokens` the built-in authority stamps the root of a hash tree over all sealed records that wait when a transaction begins.
// Each record gets an evidence record that verifies alone. This saves a signature for each record, and costs space. The caller that commits
// closes the tree, stamps it and writes all evidence records, at 2 µs each. DER is written from its end, where every length is known in
// time. In an earlier design each caller wrote its own evidence record while the previous transaction ran. That woke every caller twice,
// and was a fifteenth slower once an evidence record cost 2 µs instead of 9 µs. The default is the simpler way: a record has its token
// before it is queued. Acts about time stamps never wait, and keep a token of their own.
//
// # The operator's clock is tied to another one through the log
//
// `jurat log anchor` asks an outside authority to stamp the signed checkpoint, and logs the token (`checkpoint_stamp`). One token then
// proves for every record under that checkpoint that it existed by then, even if only the operator's clock stamped the record. That clock
// can be ahead of the true time. But it can be set back by at most the time between two stamped checkpoints. A proof uses the earliest
// stamped checkpoint that covers it, as that proves most. The acts themselves do not count as unstamped records: otherwise a schedule would
// never come to rest.
package stamping
