// Package scitt writes sealed records as SCITT Signed Statements, and reads them again.
//
// A Signed Statement (RFC 9943) is a COSE_Sign1 (RFC 9052) whose protected header names its issuer and subject. With a
// receipt (RFC 9942) of a transparency service in its unprotected header it is a Transparent Statement. Of a record,
// [Sign] makes a statement with the record's canonical payload, and [SignReceipt] a receipt for the record's entry in the
// log. The tree of jurat's log is that of RFC 9162 with SHA-256 in any case.
//
// # The signature of a statement is the exporter's
//
// An actor signs a record's payload, and not the structure that COSE signs. So an actor's signature cannot be a COSE
// signature, and the statement has one by the exporter. The statement says so in its protected header, and
// carries the whole record in its unprotected header, so that nothing is lost and package verify can check everything.
//
// # A receipt is about the log's entry
//
// The log's leaves are entries of records, and no statements. A receipt of the log therefore shows the place of the entry, which binds the
// record's payload and signatures; it does not show that the statement was registered. The receipt carries the entry beside
// the proof, so that any verifier of RFC 9942 can check it.
//
// # What a statement must be
//
// Everything that a statement brings along is its issuer's word, also its certificates. Check takes the key from the caller. A header parameter
// that is critical and unknown is never passed over. What stands in the unprotected header is anybody's: apart from receipts and the record, which are
// checked by themselves, nothing there is looked at, and nothing there speaks against the statement.
package scitt
