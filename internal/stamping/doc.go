// Package stamping gets time stamps. A Client asks one time-stamping authority over HTTP (RFC 3161, section 3.4). It verifies each answer
// in full, against roots that the operator configured, before it returns the token. Stampers are all authorities that stamp new records,
// the built-in one included. A Timekeeper gets the time stamps that records wait for, lets outside
// authorities stamp the log's checkpoints, and renews these stamps before they end.
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
// # The operator's clock is tied to another one through the log
//
// `jurat log stamp --checkpoint` asks an outside authority to stamp the signed checkpoint, and logs the token (`checkpoint_stamp`). One token then
// proves for every record under that checkpoint that it existed by then, even if only the operator's clock stamped the record. That clock
// can be ahead of the true time. But it can be set back by at most the time between two stamped checkpoints. A proof carries, of each
// authority, the earliest stamped checkpoint over each record, as that proves most; a later token over a checkpoint and its tokens
// renews them. The acts themselves do not count as unstamped records: otherwise a schedule would
// never come to rest.
package stamping
