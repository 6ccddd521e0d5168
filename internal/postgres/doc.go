// Package postgres keeps in a PostgreSQL database what several machines share: the log (Store), the small files
// (Files), locks (Locks) and the queue of trials (Jobs). Connect makes the connection pool for them. A connection ends when the server stops answering. No error of
// this package contains the password.
//
// The methods of Store, Files and Locks return the errors that their interfaces name. If the server does not answer
// or refuses, the errors of Store, Files, Locks and the queue wrap ErrUnreachable, ErrNoDatabase, ErrNotLetIn or ErrNotAllowed. Store wraps other errors of the server in storage.ErrDiskFull, ErrReadOnly or
// ErrDamaged, or in ErrNoTables. The errors of Files are *fs.PathError; they wrap filestore.ErrDamaged or ErrOtherKey
// if a file cannot be unwrapped. All others are passed on as they are.
//
// # Several processes share one log through PostgreSQL, without a leader
//
// A transaction first locks the one row of jurat.head. Then it takes the snapshot in which it reads (READ COMMITTED).
// So it sees everything committed before, and no other process commits in between: the order of locks is the order of
// the log. A leader would have to be elected, and its failure detected. The server releases the lock when the
// transaction or the connection ends. A process that dies, loses its connection or stops loses its transaction after
// ten seconds; the server rolls it back.
//
// A stricter isolation level gains nothing, because writers exclude each other: every writer that waited would fail
// with a conflict. The lock is a row, not an advisory lock, because another program could take an advisory lock by
// choosing the same number.
//
// # A batch is three messages to the server
//
// The first message takes the lock and reads the head. The second reads all that decides what may be appended. The
// third stores everything and commits. A lone caller waits for these three, and for one fsync.
//
// # If the answer to a COMMIT is lost, the store finds out the outcome
//
// A connection can break while the COMMIT is on its way. The server may carry it out after the caller has received an
// error. So the store takes the same lock once more before it says that a record is missing: then the transaction is
// over, committed or not. If the server cannot be asked, the store answers that the outcome is unknown.
//
// # The head of the log on PostgreSQL is its last record
//
// If every transaction updated one row, its old versions would stay for as long as a backup reads, and slow down
// every reader. So the root hash is in the last record of a batch, and each hash of the tree in the record that
// completes it. A record is one row.
//
// # The server notifies each process when the log grows
//
// PostgreSQL notifies every process of a commit, over a connection that each process keeps for this purpose. SQLite
// is polled twice a second. Both feed one channel that callers wait on. A lost connection delays notifications, but
// loses none: after it reconnects, every waiting caller checks the log once.
//
// # A lock of machines is a lock of a session
//
// The lock on a trial must end with the process that conducts it, however that ends. On one machine the operating
// system guarantees this. Among machines a database session does, on a connection of its own. A lease in a table
// would need synchronised clocks, or writes that renew it all the time. The session has the advantage of a lease: the
// server ends it after twenty seconds without a message (`idle_session_timeout`). The process treats it as lost after
// thirteen, so that it stops first. Work under a lock runs in a context that ends with the lock. That only avoids
// useless work: the log makes sure that no act gets a second place.
//
// # Small files
//
// All small files are encrypted under a key that the database does not have: see package filestore. So someone who
// can write to the database cannot plant a key, a setting or a certificate. The database stops returning replaced
// and removed content at once. Its disks may keep that content longer: docs/threat-model.md says where.
package postgres
