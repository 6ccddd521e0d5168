package find

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"jurat/evidence"
	"jurat/internal/ledger"
	"jurat/jury"
)

// An Index finds records by their words, and by who sealed them, how and when. It is safe for concurrent use, also by
// several processes with the same file.
type Index struct {
	ledger *ledger.Ledger
	db     *sql.DB
	key    []byte // of the terms

	following chan struct{} // holds one element while one caller reads the log
	next      atomic.Int64  // the place of the next record to read, when the file was last looked at
	size      atomic.Int64  // of the log, when it was last looked at
}

// Open opens the index of a log in a file, "" for one in memory. Follow fills it. Its errors are those of the file and
// of reading the log.
func Open(ctx context.Context, l *ledger.Ledger, path string) (*Index, error) {
	db, err := openFile(ctx, l, path)
	if err != nil {
		return nil, err
	}
	x := &Index{ledger: l, db: db, following: make(chan struct{}, 1)}
	var next int64
	if err := db.QueryRowContext(ctx, "SELECT next, key FROM state").Scan(&next, &x.key); err != nil {
		return nil, errors.Join(fmt.Errorf("reading the index of words: %w", err), db.Close())
	}
	x.next.Store(next)
	return x, nil
}

// Close closes the file.
func (x *Index) Close() error { return x.db.Close() }

// Progress says how much of the log the index had when Follow was called last.
func (x *Index) Progress() (done, total int64) {
	done = x.next.Load()
	return done, max(done, x.size.Load())
}

// A doc is what the index takes from a record.
type doc struct {
	place  int64
	action evidence.ActionType
	role   evidence.Role
	actor  string
	agent  string // of a recorder's act: whose act it saw
	at     time.Time
	chain  string
	texts  []string // folded
	bytes  int
	sum           // of its chain, as far as this record alone says
	notes  []note // of what is looked up otherwise
}

// A sum is what the index knows of a chain.
type sum struct {
	Sight  *Sight   `json:"sight,omitempty"` // what recorders saw in it; nil: nothing
	Last   int64    `json:"last,omitempty"`  // the place of the last record about that
	Jurors []string `json:"jurors,omitempty"`
	Models []string `json:"models,omitempty"`
}

// plus adds what a later record says.
func (s *sum) plus(d *doc) {
	if d.Sight != nil {
		if s.Sight == nil {
			s.Sight = new(*d.Sight)
		} else {
			s.Sight.plus(d.Sight)
		}
		s.Last = d.place
	}
	s.Jurors, s.Models = union(s.Jurors, d.Jurors), union(s.Models, d.Models)
}

// A note is a row of the table of notes, without the place.
type note struct {
	kind, name string
	at         int64
	value      string
}

// docOf takes from a record what the index needs.
func docOf(place int64, p *evidence.Payload) *doc {
	d := &doc{place: place, action: p.ActionType, role: p.Role(), actor: p.Actor(), at: p.Time(), chain: p.ChainID}
	for _, passage := range Passages(p) {
		if text := Fold(passage.Text); text != "" {
			d.texts, d.bytes = append(d.texts, text), d.bytes+len(text)
		}
	}
	d.seat(p)
	d.note(p)
	return d
}

// seat takes the jurors and models that an act of a trial names: an opening names those who are to speak, and each act the model that
// spoke.
func (d *doc) seat(p *evidence.Payload) {
	if !inTrial(p.ChainID) {
		return
	}
	add := func(list *[]string, names ...string) {
		for _, name := range names {
			if name = Fold(name); name != "" {
				*list = append(*list, name)
			}
		}
	}
	if d.role == evidence.RoleJuror || d.role == evidence.RoleJudge {
		add(&d.Jurors, d.actor)
		add(&d.Models, p.Model, p.ModelVersion)
	}
	if p.ActionType != evidence.PhaseOpening {
		return
	}
	body, err := jury.DecodeBody(p.ActionType, p.Response)
	opening, ok := body.(*jury.Opening)
	if err != nil || !ok { // package trial reports an unreadable opening
		return
	}
	seats := opening.Settings.Seats
	if opening.Settings.Judge != nil {
		seats = append(seats[:len(seats):len(seats)], *opening.Settings.Judge)
	}
	for _, s := range seats {
		add(&d.Jurors, s.JurorID, s.RoleName)
		add(&d.Models, s.Model)
	}
}

// has reports whether the record has a folded text.
func (d *doc) has(folded string) bool {
	return slices.ContainsFunc(d.texts, func(text string) bool { return strings.Contains(text, folded) })
}

func inTrial(chain string) bool { return strings.HasPrefix(chain, evidence.TrialPrefix) }
