package trial

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"github.com/go-json-experiment/json"

	"jurat/internal/atomicfile"
)

// storedVersion is the version of what Save writes. It must change when Summary, jury.Reckoning or what they make of a record changes:
// TestStoredVersion fails then.
const storedVersion = 4

// SaveEvery is after how many newly read records it is worth to save an Index: reading as many takes less than a tenth of a second.
const SaveEvery = 4096

// A stored is an Index in a file. It is made of the log, and can be deleted at any time.
type stored struct {
	Version  int         `json:"version"`
	Log      string      `json:"log"`      // its origin
	Replaced int64       `json:"replaced"` // how often briefs were replaced when the log was read: records that expire change that
	Next     int64       `json:"next"`
	Changes  int64       `json:"changes"`
	Last     storedPlace `json:"last"`
	Trials   []*Summary  `json:"trials"`
}

// A storedPlace says which log this is: a log that was restored from an older backup may have grown differently since.
type storedPlace struct {
	Index    int64  `json:"index"`
	RecordID string `json:"record"` // "": nothing was read
}

// Restore reads what Save has written, so that Follow only reads what came later. If the file is missing or damaged, of another version or
// of another log, or if records have expired since, Follow reads the whole log. Restore must come before the first Follow. Its errors are
// those of the log.
func (x *Index) Restore(ctx context.Context, file string) error {
	x.reading <- struct{}{}
	defer func() { <-x.reading }()
	now, err := x.Ledger.Briefs().Replaced(ctx)
	if err != nil {
		return fmt.Errorf("reading the stored list of trials: %w", err)
	}
	x.kept = &now
	s := readStored(file)
	if s == nil || s.Log != x.Ledger.Origin() {
		return nil
	}
	if s.Replaced != now {
		return remove(file)
	}
	same, err := x.has(ctx, s.Last)
	if err != nil {
		return fmt.Errorf("reading the stored list of trials: %w", err)
	}
	if same {
		x.restore(s)
	}
	return nil
}

// readStored returns nil if the file cannot be used.
func readStored(file string) *stored {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	s := new(stored)
	if json.Unmarshal(text, s, json.RejectUnknownMembers(true)) != nil || s.Version != storedVersion || slices.Contains(s.Trials, nil) {
		return nil
	}
	return s
}

// has reports whether the log has a record at its place.
func (x *Index) has(ctx context.Context, p storedPlace) (bool, error) {
	if p.RecordID == "" {
		return true, nil
	}
	size, err := x.Ledger.Size(ctx)
	if err != nil || p.Index >= size {
		return false, err
	}
	rows, err := x.Ledger.RowsFrom(ctx, p.Index, 1)
	return err == nil && rows[0].RecordID == p.RecordID, err
}

func (x *Index) restore(s *stored) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.next, x.changes, x.last = s.Next, s.Changes, s.Last
	x.order = s.Trials
	for _, one := range s.Trials {
		if one.Reckoning != nil {
			one.Outcome = one.Reckoning.Outcome()
		}
		x.entries[one.ID] = one
	}
}

// Save writes the Index to a file, for Restore, if Follow has read at least so many records since. If records have expired, it removes the file, and the Index reads the log again. Its errors are those of the file and
// of the log.
func (x *Index) Save(ctx context.Context, file string, least int) error {
	x.reading <- struct{}{} // Follow alone changes what is written here
	defer func() { <-x.reading }()
	if x.kept == nil {
		return nil
	}
	now, err := x.Ledger.Briefs().Replaced(ctx)
	if err == nil && now != *x.kept {
		if err = remove(file); err == nil {
			err = x.again(ctx)
		}
	}
	if err == nil && x.unsaved >= max(1, least) {
		err = x.write(file)
	}
	if err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) { // without a folder that can be written, each start reads all trials
		return fmt.Errorf("storing the list of trials: %w", err)
	}
	return nil
}

// again reads the whole log, and then replaces what this Index has: it still has what expired.
func (x *Index) again(ctx context.Context) error {
	fresh := NewIndex(x.Ledger, nil)
	now, err := x.Ledger.Briefs().Replaced(ctx)
	if err != nil {
		return err
	}
	if err := fresh.Follow(ctx); err != nil {
		return err
	}
	x.next, x.changes, x.last, x.unsaved, x.kept = fresh.next, fresh.changes, fresh.last, fresh.unsaved, &now
	x.mu.Lock()
	defer x.mu.Unlock()
	x.entries, x.order = fresh.entries, fresh.order
	return nil
}

func (x *Index) write(file string) error {
	s := stored{Version: storedVersion, Log: x.Ledger.Origin(), Replaced: *x.kept, Next: x.next, Changes: x.changes, Last: x.last, Trials: x.order}
	text, err := json.Marshal(&s, json.Deterministic(true))
	if err != nil {
		return err
	}
	if err := atomicfile.Replace(file, text, 0o600); err != nil { // it shows names of agents and submitters
		return err
	}
	x.unsaved = 0
	return nil
}

// remove removes a file that shows what has expired.
func remove(file string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing a stored list of trials that is out of date: %w", err)
	}
	return nil
}
