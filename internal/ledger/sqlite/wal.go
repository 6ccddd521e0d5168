package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"sync"

	"jurat/internal/ledger/storage"
)

const (
	// movedAt is about how many bytes are in the write-ahead log when it is moved into the database file, beside what is committed
	// meanwhile.
	movedAt = 8 << 20
	// movedByCommit is how many pages may be in it before a commit moves them itself, and whoever waits for that commit waits for
	// that, too: the bound where moving does not keep up.
	movedByCommit = 8192
)

// A mover moves the write-ahead log into the database file from time to time, on a connection of its own: in a commit it would
// hold up the callers whose records are committed, for the time in which hundreds of pages are written and synced.
type mover struct {
	db      *sql.DB
	written int           // bytes since the last time, about; of whoever is at work in the store
	due     chan struct{} // of one element
	ended   sync.WaitGroup
}

func newMover(path string) (*mover, error) {
	db, err := sql.Open("sqlite", dataSource(path, url.Values{"mode": {"rw"}, "_busy_timeout": {"0"}, "_synchronous": {"FULL"}}))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	m := &mover{db: db, due: make(chan struct{}, 1)}
	m.ended.Go(func() {
		for range m.due {
			// It serves whoever writes next, so it is bound to nobody's context. An error, or another process that does the same, leaves the pages where they are: durable, and to be moved the next time.
			_, _ = m.db.ExecContext(context.Background(), `PRAGMA wal_checkpoint(PASSIVE)`)
		}
	})
	return m, nil
}

// add notes what was committed. It is called by one at a time.
func (m *mover) add(bytes int) {
	if m.written += bytes; m.written < movedAt {
		return
	}
	m.written = 0
	select {
	case m.due <- struct{}{}:
	default: // it is due already
	}
}

// close waits for the one that is under way. Nobody may add any more.
func (m *mover) close() error {
	close(m.due)
	m.ended.Wait()
	if err := m.db.Close(); err != nil {
		return fmt.Errorf("closing the connection that moves the write-ahead log: %w", err)
	}
	return nil
}

// volume is about how many bytes a batch adds to the write-ahead log: its own, and the pages that every commit writes anew.
func volume(batch *storage.Batch) int {
	bytes := 6 * pageSize
	for i := range batch.Rows {
		bytes += len(batch.Rows[i].Payload) + 1024
		for _, t := range batch.Rows[i].Timestamps {
			bytes += len(t.Token)
		}
	}
	for i := range batch.Briefs {
		bytes += len(batch.Briefs[i].Line) + len(batch.Briefs[i].Names) + 20*len(batch.Briefs[i].Keys)
	}
	return bytes
}
