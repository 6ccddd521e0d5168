// Package postgres keeps in a PostgreSQL database what several machines share: the log (Store) and the small files (Files). Connect makes
// the pool for all of it. Its connections notice when the server no longer answers, and no error of theirs contains the password.
//
// # Several processes share one log through PostgreSQL, and none of them leads
//
// A transaction first locks the one row of jurat.head. Only then does it take the snapshot in which it reads (READ COMMITTED). So it sees
// all that was committed before, and no other process commits in between: the order of locks is the order of the log. A leader would have
// to be elected, and its loss noticed. The server releases the lock with the transaction or with the connection. A process that dies, is
// cut off or stands still loses its transaction after ten seconds, and leaves nothing behind.
//
// A stricter isolation level would serve nothing, as writers exclude each other: every writer that waited would fail with a conflict. The
// lock is a row and not an advisory lock, because no other program can take it by choosing the same number.
//
// # A batch is three messages to the server
//
// The lock and the head; all that decides on what may be appended, asked at once; and all that is stored, together with its COMMIT.
// What a lone caller waits for is these, and one fsync.
//
// # When the answer to a COMMIT is lost, it is waited for
//
// A connection can break with the COMMIT on its way, and the server can carry it out when the caller has long been told of an error.
// So a record is not said to be missing before the same lock was had once more: then the transaction is over, one way or the other.
// Where the server cannot be asked, nobody is told anything but that it is not known.
//
// # The head of the log on PostgreSQL is its last record
//
// A row that every transaction changes leaves all its old versions lying as long as a backup reads, and everybody steps over them.
// The root hash stands with the last record of a batch, and the hashes of the tree with the record that completes them, so that a
// record is one row and no more.
//
// # Whoever waits for the log to grow is told
//
// PostgreSQL tells every process when a transaction is committed, over a connection that each has for that; SQLite is asked twice a
// second. Both are one channel to whoever waits. A connection that was lost delays news, and loses none: when it is there again,
// everybody looks once.
//
// # Small files
//
// All small files are encrypted under a key that the database does not have: see package filestore. So whoever can write into the database
// still cannot give a machine a key, a setting or a certificate. The database stops returning overwritten and removed content at once.
// Its disks may keep it longer: docs/threat-model.md says where.
package postgres
