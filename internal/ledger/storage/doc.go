// Package storage says what a ledger asks of the database under it: the rows of one log, their hashes, and what stands beside them. The
// stores are ledger/sqlite, postgres and ledger/memory; storetest holds each against the contract.
//
// A Store is made of parts, and each reader names the part that it uses: Records reads, Log appends, Outbox says which records wait for time
// stamps, Archives which files hold what rows have shed, Checkpoints what was signed last, Briefs what lists show.
package storage
