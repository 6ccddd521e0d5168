package find

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
)

// What one transaction adds at most, so that others wait for it only briefly.
const (
	batchPlaces = 4096
	batchBytes  = 8 << 20 // of folded text
)

// Follow reads what is new in the log, and removes what has expired. It calls progress while it does; nil: progress is not reported. Its
// errors are those of the log and of the file. It can be interrupted at any point, and keeps what it has read.
func (x *Index) Follow(ctx context.Context, progress func(done, total int64)) error {
	select {
	case x.following <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-x.following }()
	if progress == nil {
		progress = func(int64, int64) {}
	}
	err := x.forget(ctx)
	for more := true; err == nil && more; {
		more, err = x.follow(ctx, progress)
	}
	if err != nil {
		return fmt.Errorf("following the log with the index of words: %w", err)
	}
	return nil
}

// follow reads the next part of the log, and reports whether there is more.
func (x *Index) follow(ctx context.Context, progress func(done, total int64)) (more bool, err error) {
	size, err := x.ledger.Size(ctx)
	if err != nil {
		return false, err
	}
	x.size.Store(size)
	var next int64
	if err := x.db.QueryRowContext(ctx, "SELECT next FROM state").Scan(&next); err != nil {
		return false, err
	}
	if x.next.Store(next); next >= size {
		return false, nil
	}
	b, err := x.begin(ctx)
	if err != nil {
		return false, err
	}
	defer b.tx.Rollback() //nolint:errcheck // after a commit it does nothing
	if err := b.read(ctx, size, progress); err != nil && ctx.Err() == nil {
		return false, err
	}
	if err := b.end(ctx); err != nil {
		return false, err
	}
	x.next.Store(b.next)
	return b.next < size, ctx.Err()
}

// A batch is a transaction that adds records to the index. No other process adds any meanwhile. What is read while it lasts is added
// even if the context ends.
type batch struct {
	*Index
	tx                    *sql.Tx
	words, records, notes *sql.Stmt
	next, bytes           int64
	sums                  map[string]*sum // of the chains that it adds to
	cache                 map[piece]*cachedPiece
}

func (x *Index) begin(ctx context.Context) (*batch, error) {
	tx, err := x.db.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return nil, err
	}
	b := &batch{Index: x, tx: tx, sums: map[string]*sum{}, cache: map[piece]*cachedPiece{}}
	err = tx.QueryRow("SELECT next FROM state").Scan(&b.next)
	for _, s := range []struct {
		made **sql.Stmt
		text string
	}{{&b.words, "INSERT INTO words (rowid, terms) VALUES (?, ?)"}, {&b.records, "INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?)"},
		{&b.notes, "INSERT OR IGNORE INTO notes VALUES (?, ?, ?, ?, ?)"}} {
		if err == nil {
			*s.made, err = tx.Prepare(s.text)
		}
	}
	if err != nil {
		return nil, errors.Join(err, tx.Rollback())
	}
	return b, nil
}

// read adds records until the batch is full, the log ends, or ctx does.
func (b *batch) read(ctx context.Context, size int64, progress func(done, total int64)) error {
	from := b.next
	for r, err := range b.ledger.Records(ctx, from) {
		if err != nil {
			return err
		}
		if r.Index >= from+batchPlaces || b.bytes >= batchBytes {
			b.next = r.Index
			return nil
		}
		if err := b.add(docOf(r.Index, &r.Payload)); err != nil {
			return err
		}
		b.next = r.Index + 1
		if progress(b.next, max(b.next, size)); ctx.Err() != nil {
			return ctx.Err()
		}
	}
	b.next = max(b.next, size) // the last records may have expired
	return nil
}

func (b *batch) add(d *doc) error {
	if _, err := b.words.Exec(d.place, string(b.termsOf(d, b.cache))); err != nil {
		return err
	}
	if _, err := b.records.Exec(d.place, string(d.action), string(d.role), d.actor, d.agent, d.at.UnixMilli(), d.chain); err != nil {
		return err
	}
	for _, n := range d.notes {
		if _, err := b.notes.Exec(n.kind, n.name, n.at, d.place, n.value); err != nil {
			return err
		}
	}
	b.bytes += int64(d.bytes)
	if d.chain == "" || d.empty() {
		return nil
	}
	if b.sums[d.chain] == nil {
		s, err := loadSum(b.tx, d.chain)
		if err != nil {
			return err
		}
		b.sums[d.chain] = s
	}
	b.sums[d.chain].plus(d)
	return nil
}

// end commits.
func (b *batch) end(ctx context.Context) error {
	for chain, s := range b.sums {
		if err := s.save(b.tx, chain); err != nil {
			return err
		}
	}
	if b.next > 0 {
		rows, err := b.ledger.RowsFrom(context.WithoutCancel(ctx), b.next-1, 1)
		if err != nil {
			return err
		}
		if _, err := b.tx.Exec("UPDATE state SET next = ?, last = ?", b.next, rows[0].RecordID); err != nil {
			return err
		}
	}
	return b.tx.Commit()
}

// loadSum reads what the index knows of a chain.
func loadSum(tx *sql.Tx, chain string) (*sum, error) {
	s := new(sum)
	var last sql.NullInt64
	var summary, jurors, models string
	err := tx.QueryRow("SELECT last, summary, jurors, models FROM chains WHERE chain = ?", chain).Scan(&last, &summary, &jurors, &models)
	if errors.Is(err, sql.ErrNoRows) {
		return s, nil
	}
	if err == nil && last.Valid {
		s.last, s.sight = last.Int64, new(Sight)
		err = s.sight.read(summary)
	}
	s.jurors, s.models = lines(jurors), lines(models)
	return s, err
}

func lines(text string) []string {
	return strings.FieldsFunc(text, func(c rune) bool { return c == '\n' })
}

func (s *sum) save(tx *sql.Tx, chain string) error {
	var last, earliest, latest, agents, summary any = nil, nil, nil, "", ""
	if s.sight != nil {
		doc, err := json.Marshal(s.sight)
		if err != nil {
			return err
		}
		last, earliest, latest, agents, summary = s.last, s.sight.First, s.sight.Last, foldedLines(s.sight.Agents), string(doc)
	}
	_, err := tx.Exec("INSERT OR REPLACE INTO chains VALUES (?, ?, ?, ?, ?, ?, ?, ?)", chain, last, earliest, latest, agents, summary,
		strings.Join(s.jurors, "\n"), strings.Join(s.models, "\n"))
	return err
}

func foldedLines(names []string) string {
	folded := make([]string, len(names))
	for i, name := range names {
		folded[i] = Fold(name)
	}
	return strings.Join(folded, "\n")
}
