// Package storage defines what a ledger needs of a database: the rows of one log, their hashes, and their briefs. The
// stores are ledger/sqlite and postgres; storetest checks each of them against this contract.
//
// A Store consists of parts, and each user names the part that it needs: Records reads, Log appends, Outbox lists the
// records that wait for time stamps, Expiry removes content, Checkpoints keeps the last signed checkpoint, Dictionaries
// what rows are compressed with, Briefs what lists show.
package storage
