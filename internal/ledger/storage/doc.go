// Package storage defines what a ledger needs of a database: the rows of one log, their hashes, and their briefs. The
// stores are ledger/sqlite and postgres, which run the statements of SQL here; storetest checks each of them against this
// contract.
//
// A Store consists of parts, and each user names the part that it needs: Records reads, Log appends, Outbox lists the
// records that wait for time stamps, Expiry removes content, Checkpoints keeps the last signed checkpoint, Dictionaries
// what rows are compressed with, Briefs what lists show. Values keep what is sealed apart of records.
//
// # The statements are written once
//
// SQL has the statements of both databases, in PostgreSQL's words. An Engine runs them: on SQLite it spells and prepares
// each once, and to PostgreSQL it sends as many as possible in one message. A Dialect has what the tables of a database
// have in their own way, because it is faster there: SQLite's index of digests by stretches, its table of actors, and
// its table of hashes; PostgreSQL's record, which has its hashes and the head in its row. Refused: database/sql for
// PostgreSQL, because it waits for the answer to each statement before it sends the next.
//
// # A row's text is compressed apart from its random bytes
//
// Signatures and most of a token are random. Among letters, they would make every letter longer. So a blob has two
// parts: the text, with codes for frequent words and bytes for hashes, as a zstd frame; and the rest, as its
// differences from a template, which has the certificates of the built-in authority. What can be computed is left out:
// the record's id, which is a column, and the two hashes in a token. Of 2 KiB of English prose some 700 bytes remain,
// and 400 of the rest. Refused: stronger levels of zstd, which take 2 to 30 times as long for 3 to 8 % of a record.
package storage
