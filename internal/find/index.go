package find

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/ledger"
	"jurat/internal/ledger/storage"
	"jurat/jury"
)

// An Index finds records by their words, and by who sealed them, how and when. It is safe for concurrent use, also by
// several processes with the same file.
type Index struct {
	ledger *ledger.Ledger
	db     *sql.DB

	following chan struct{} // holds one element while one caller reads the log

	mu        sync.Mutex          // held while the fields below are used, and not while the log or the file is read
	stretches []stretch           // in log order
	numbers   map[string]int64    // of trials; a number is not 0
	seats     map[seat]*numberSet // trials by jurors and models
	tail      []*doc              // the newest records, which are in no stretch yet
	tailBytes int
	next      int64 // the place of the next record to read
	size      int64 // of the log, when it was last read
}

// A stretch is what is in memory of a part of the log that is indexed.
type stretch struct {
	begin, after     int64
	earliest, latest int64  // what the actors claim, in milliseconds
	trials           []byte // 4 bytes for each place; a place beyond them is in no trial
}

func (s *stretch) trial(offset int) int64 {
	if 4*offset+4 > len(s.trials) {
		return 0
	}
	return int64(binary.LittleEndian.Uint32(s.trials[4*offset:]))
}

// A doc is what the index takes from a record.
type doc struct {
	place  int64
	id     string
	action evidence.ActionType
	role   evidence.Role
	actor  string
	at     time.Time
	chain  string
	texts  []string // folded
	bytes  int
	seats  []seat
	told   // of what recorders saw
}

// A seat is a juror, a role or a model that took part in a trial.
type seat struct{ kind, name string }

const (
	jurorSeat = "juror"
	modelSeat = "model"
)

// Open opens the index of a log in a file, "" for one in memory. Follow fills it. Its errors are those of the file and
// of reading the log.
func Open(ctx context.Context, l *ledger.Ledger, path string) (*Index, error) {
	db, err := openFile(ctx, path)
	if err != nil {
		return nil, err
	}
	x := &Index{ledger: l, db: db, following: make(chan struct{}, 1)}
	if err := x.load(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("reading the index of words: %w", err), db.Close())
	}
	return x, nil
}

// Close closes the file.
func (x *Index) Close() error { return x.db.Close() }

// Progress says how much of the log the index has.
func (x *Index) Progress() (done, total int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.next, max(x.next, x.size)
}

// load reads what the file has, and empties a file of another log.
func (x *Index) load(ctx context.Context) error {
	stretches, last, err := x.readStretches(ctx)
	if err != nil {
		return err
	}
	if n := len(stretches); n > 0 {
		same, err := x.isOfLog(ctx, stretches[n-1].after-1, last)
		if err != nil {
			return err
		}
		if !same {
			if err := x.empty(ctx); err != nil {
				return err
			}
			stretches = nil
		}
	}
	numbers, err := x.readTrials(ctx)
	if err != nil {
		return err
	}
	seats, err := x.readSeats(ctx)
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.stretches, x.numbers, x.seats = stretches, numbers, seats
	x.tail, x.tailBytes, x.next = nil, 0, 0
	if n := len(stretches); n > 0 {
		x.next = stretches[n-1].after
	}
	return nil
}

func (x *Index) readStretches(ctx context.Context) (list []stretch, last string, err error) {
	rows, err := x.db.QueryContext(ctx, "SELECT begin, after, last, earliest, latest, trials FROM stretches ORDER BY begin")
	if err != nil {
		return nil, "", err
	}
	defer rows.Close()
	for rows.Next() {
		var s stretch
		if err := rows.Scan(&s.begin, &s.after, &last, &s.earliest, &s.latest, &s.trials); err != nil {
			return nil, "", err
		}
		list = append(list, s)
	}
	return list, last, rows.Err()
}

func (x *Index) readTrials(ctx context.Context) (map[string]int64, error) {
	rows, err := x.db.QueryContext(ctx, "SELECT number, id FROM trials")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	numbers := map[string]int64{}
	for rows.Next() {
		var n int64
		var id string
		if err := rows.Scan(&n, &id); err != nil {
			return nil, err
		}
		numbers[id] = n
	}
	return numbers, rows.Err()
}

// numberOf returns the number of a trial; 0 if it has none.
func (x *Index) numberOf(trial string) int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.numbers[trial]
}

func (x *Index) readSeats(ctx context.Context) (map[seat]*numberSet, error) {
	rows, err := x.db.QueryContext(ctx, "SELECT kind, name, trial FROM seats")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	seats := map[seat]*numberSet{}
	for rows.Next() {
		var s seat
		var trial int64
		if err := rows.Scan(&s.kind, &s.name, &trial); err != nil {
			return nil, err
		}
		sit(seats, s, trial)
	}
	return seats, rows.Err()
}

func sit(seats map[seat]*numberSet, s seat, trial int64) {
	if seats[s] == nil {
		seats[s] = new(numberSet)
	}
	seats[s].add(trial)
}

// isOfLog reports whether the log has this record at this place: a log that was restored from an older backup may have
// grown differently since.
func (x *Index) isOfLog(ctx context.Context, place int64, id string) (bool, error) {
	size, err := x.ledger.Size(ctx)
	if err != nil || size <= place {
		return false, err
	}
	rows, err := x.ledger.RowsFrom(ctx, place, 1)
	return err == nil && rows[0].RecordID == id, err
}

// empty removes everything from the file.
func (x *Index) empty(ctx context.Context) error {
	tx, err := x.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing
	for _, table := range []string{"meta", "stretches", "pieces", "blocks", "records", "trials", "seats", "recorded", "events", "missed", "tried", "erased"} {
		if _, err := tx.ExecContext(ctx, "DELETE FROM "+table); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// docOf takes from a record what the index needs.
func docOf(place int64, p *evidence.Payload) *doc {
	d := &doc{place: place, id: p.RecordID, action: p.ActionType, role: p.Role(), actor: p.Actor(), at: p.Time(), chain: p.ChainID, seats: seatsOf(p), told: toldBy(p)}
	for _, passage := range Passages(p) {
		if text := Fold(passage.Text); text != "" {
			d.texts, d.bytes = append(d.texts, text), d.bytes+len(text)
		}
	}
	return d
}

// seatsOf lists the jurors and models that an act of a trial names: an opening names those who are to speak, and each
// act the model that spoke.
func seatsOf(p *evidence.Payload) (list []seat) {
	add := func(kind, name string) {
		if name = Fold(name); name != "" {
			list = append(list, seat{kind, name})
		}
	}
	switch p.Role() {
	case evidence.RoleJuror, evidence.RoleJudge:
		add(jurorSeat, p.Actor())
		add(modelSeat, p.Model)
		add(modelSeat, p.ModelVersion)
	}
	if p.ActionType != evidence.PhaseOpening {
		return list
	}
	body, err := jury.DecodeBody(p.ActionType, p.Response)
	opening, ok := body.(*jury.Opening)
	if err != nil || !ok { // package trial reports an unreadable opening
		return list
	}
	seats := opening.Settings.Seats
	if opening.Settings.Judge != nil {
		seats = append(seats[:len(seats):len(seats)], *opening.Settings.Judge)
	}
	for _, s := range seats {
		add(jurorSeat, s.JurorID)
		add(jurorSeat, s.RoleName)
		add(modelSeat, s.Model)
	}
	return list
}

// expiredKey holds up to where the index has followed the operator's acts on expiry.
const expiredKey = "expired"

// expired lists the ranges of records that expired since the index followed the acts on expiry. It did so up to the
// place before, and is to continue from next. It leaves acts for later whose records are still to be removed.
func (x *Index) expired(ctx context.Context) (list []storage.Range, before, next int64, err error) {
	var text string
	err = x.db.QueryRowContext(ctx, "SELECT value FROM meta WHERE key = ?", expiredKey).Scan(&text)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, 0, 0, err
	}
	before, _ = strconv.ParseInt(text, 10, 64) // "": from the beginning
	next = before
	left, err := x.ledger.Expiry().Expiring(ctx, 0, 1)
	if err != nil || len(left) > 0 {
		return nil, before, next, err
	}
	for {
		acts, after, err := x.ledger.InChain(ctx, operator.ExpiryChain, next)
		if err != nil || len(acts) == 0 {
			return list, before, next, err
		}
		for _, act := range acts {
			e, err := operator.ReadExpiry(&act.Payload)
			if err != nil {
				return nil, 0, 0, fmt.Errorf("record %s: %w", act.Payload.RecordID, err)
			}
			list = append(list, storage.Range{From: e.From, To: e.To})
		}
		next = after
	}
}
