// Package storage defines what a ledger needs of a database: the rows of one log, their hashes, and their briefs. The
// stores are ledger/sqlite and postgres, which run the statements of SQL here; storetest checks each of them against this
// contract.
//
// A Store consists of parts, and each user names the part that it needs: Records reads, Log appends, Outbox lists the
// records that wait for time stamps, Expiry removes content, Checkpoints keeps the last signed checkpoint, Dictionaries
// what rows are compressed with, Briefs what lists show. Values keep what is sealed apart of records.
//
// # A row's text is compressed apart from its random bytes
//
// Signatures and most of a token are random. Among letters, they would make every letter longer. So a blob has two
// parts: the text, with codes for frequent words and bytes for hashes, as a zstd frame; and the rest, as its
// differences from a template, which has the certificates of the built-in authority. What can be computed is left out:
// the record's id, which is a column, and the two hashes in a token. Of 2 KiB of English prose some 700 bytes remain,
// and 400 of the rest. Refused: stronger levels of zstd, which take 2 to 30 times as long for 3 to 8 % of a record.
package storage
