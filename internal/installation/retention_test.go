package installation_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/archive"
	"jurat/internal/erasure"
	"jurat/internal/installation"
	"jurat/internal/ledger"
	"jurat/internal/ledger/fsck"
	"jurat/internal/ledger/storage"
)

// aYearAgo returns an installation whose records were sealed a year ago: some alone, some in the chain "c-1", one with a
// text sealed apart. It is opened with the present clock.
func aYearAgo(t *testing.T) (c installation.Config, i *installation.Installation, alone, chained, apart *evidence.Record) {
	t.Helper()
	then := time.Now().AddDate(-1, 0, 0)
	c = installation.Config{Dir: filepath.Join(t.TempDir(), "data"), Now: func() time.Time { return then }}
	past, _, err := installation.OpenOrCreate(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	sealed := func(text string, apart ...string) *evidence.Record {
		d, err := evidence.ParseDraft([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		r, err := past.Ledger.Seal(t.Context(), d.SealingApart(apart...), must(past.Keys.Signers(t.Context(), evidence.RoleAgent, "courier")))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	const frame = `{"agent_id":"courier","request_id":"r","timestamp":"2024-01-31T16:15:00Z","model":"m","model_version":"1","prompt":"the parcel of Anna","response":"r","parameters":{}%s}`
	alone, apart = sealed(fmt.Sprintf(frame, "")), sealed(fmt.Sprintf(frame, ""), "/prompt")
	chained = sealed(fmt.Sprintf(frame, `,"chain_id":"c-1","chain_position":1`))
	sealMany(t, past, storage.TileWidth)
	if _, err := past.Archivist.Archive(t.Context(), tomorrow()); err != nil {
		t.Fatal(err)
	}
	if err := past.Close(); err != nil {
		t.Fatal(err)
	}
	c.Now = nil
	i = open(t, c)
	sealMany(t, i, 1) // the log's own time must be the present
	return c, i, alone, chained, apart
}

// TestExpireByAClockThatIsAhead: the log's time decides, not this machine's clock.
func TestExpireByAClockThatIsAhead(t *testing.T) {
	c := installation.Config{Dir: filepath.Join(t.TempDir(), "data")}
	i, _, err := installation.OpenOrCreate(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	sealMany(t, i, storage.TileWidth)
	if _, err := i.Archivist.Archive(t.Context(), tomorrow()); err != nil {
		t.Fatal(err)
	}
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	c.Now = func() time.Time { return time.Now().AddDate(1, 0, 0) }
	i = open(t, c)
	o := expireOrder()
	o.Before = time.Now().AddDate(0, 0, 2)
	if done, err := i.Archivist.Expire(t.Context(), o); !errors.Is(err, archive.ErrTooYoung) || done.Records > 0 {
		t.Errorf("deleted by this machine's clock alone: %+v, %v", done, err)
	}
	sealMany(t, i, 1) // an authority confirms the time
	if done, err := i.Archivist.Expire(t.Context(), o); err != nil || done.Records == 0 {
		t.Errorf("%+v, %v", done, err)
	}
}

func expireOrder() archive.ExpireOrder {
	return archive.ExpireOrder{Before: time.Now().AddDate(0, -7, 0), Reason: "retention time over", By: "records office"}
}

func wantExpired(t *testing.T, i *installation.Installation, r *evidence.Record) {
	t.Helper()
	if _, err := i.Ledger.Record(t.Context(), r.Payload.RecordID); !errors.Is(err, ledger.ErrExpired) || errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("record %s: %v", r.Payload.RecordID, err)
	}
}

func wantThere(t *testing.T, i *installation.Installation, r *evidence.Record) {
	t.Helper()
	got, err := i.Ledger.Record(t.Context(), r.Payload.RecordID)
	if err != nil || got.Digest != r.Digest {
		t.Errorf("record %s: %v", r.Payload.RecordID, err)
		return
	}
	wantProved(t, i, got)
}

// TestExpire deletes expired records. Records on hold stay, and every other proof stays valid.
func TestExpire(t *testing.T) {
	c, i, alone, chained, apart := aYearAgo(t)
	hashed := entries(t, i)
	hold, err := i.Archivist.Hold(t.Context(), archive.HoldOrder{Chain: "c-1", Reason: "case 17", By: "legal"})
	if err != nil {
		t.Fatal(err)
	}
	dry := expireOrder()
	dry.DryRun = true
	if done, err := i.Archivist.Expire(t.Context(), dry); err != nil || done.Records != storage.TileWidth-1 || done.Held != 1 {
		t.Fatalf("dry run: %+v, %v", done, err)
	}
	wantThere(t, i, alone)
	done, err := i.Archivist.Expire(t.Context(), expireOrder())
	if err != nil || done.Records != storage.TileWidth-1 || done.Held != 1 || done.Unproved != 0 || len(done.Files) != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
	wantExpired(t, i, alone)
	wantExpired(t, i, apart)
	wantThere(t, i, chained)
	if _, err := i.Ledger.Record(t.Context(), alone.Payload.RecordID); !strings.Contains(err.Error(), done.Files[0].Act) {
		t.Errorf("the error names no act: %v", err)
	}
	if opens(t.Context(), i, apart) {
		t.Error("the text that was sealed apart can still be opened")
	}
	if diff := cmp.Diff(hashed, entries(t, i)[:len(hashed)]); diff != "" {
		t.Errorf("entries (-before +after):\n%s", diff)
	}
	wantWhole(t, c)
	seen := 0
	for r, err := range i.Ledger.Records(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		seen++
		wantProved(t, i, r.Record)
	}
	if size, err := i.Ledger.Size(t.Context()); err != nil || int64(seen) != size-(storage.TileWidth-1) {
		t.Errorf("%d records of %d, %v", seen, size, err)
	}

	if _, err := i.Archivist.Release(t.Context(), hold, "case closed", "legal"); err != nil {
		t.Fatal(err)
	}
	if _, err := i.Archivist.Release(t.Context(), hold, "case closed", "legal"); !errors.Is(err, archive.ErrNoHold) {
		t.Errorf("released twice: %v", err)
	}
	if done, err := i.Archivist.Expire(t.Context(), expireOrder()); err != nil || done.Records != 1 || done.Held != 0 {
		t.Errorf("%+v, %v", done, err)
	}
	wantExpired(t, i, chained)
	if _, err := i.Ledger.Chain(t.Context(), "c-1"); !errors.Is(err, ledger.ErrExpired) {
		t.Errorf("the chain: %v", err)
	}
	wantWhole(t, c)
	if names, err := os.ReadDir(filepath.Join(c.Dir, "archive")); err != nil || len(names) != 1 {
		t.Errorf("files %v, %v", names, err)
	}
}

// opens reports whether a text of a record that is sealed apart can be read.
func opens(ctx context.Context, i *installation.Installation, r *evidence.Record) bool {
	disclosed, err := i.Apart.Disclose(ctx, r, nil)
	return err == nil && len(disclosed.Disclosures) > 0
}

// TestExpireRefuses asks for deletions that are not allowed.
func TestExpireRefuses(t *testing.T) {
	_, i, alone, _, apart := aYearAgo(t)
	for name, change := range map[string]func(*archive.ExpireOrder){
		"younger than six months": func(o *archive.ExpireOrder) { o.Before = time.Now().AddDate(0, 0, -operator.MinRetention+1) },
		"to come":                 func(o *archive.ExpireOrder) { o.Before = time.Now().AddDate(1, 0, 0) },
		"no time":                 func(o *archive.ExpireOrder) { o.Before = time.Time{} },
		"no reason":               func(o *archive.ExpireOrder) { o.Reason = " " },
		"nobody":                  func(o *archive.ExpireOrder) { o.By = "" },
	} {
		o := expireOrder()
		change(&o)
		if done, err := i.Archivist.Expire(t.Context(), o); err == nil {
			t.Errorf("%s: %+v", name, done)
		}
	}
	if err := i.Archivist.SetRetention(t.Context(), operator.MinRetention-1, "less", "boss"); !errors.Is(err, archive.ErrTooYoung) {
		t.Errorf("less than six months: %v", err)
	}
	if err := i.Archivist.SetRetention(t.Context(), 2*366, "contract", "boss"); err != nil {
		t.Fatal(err)
	}
	if done, err := i.Archivist.Expire(t.Context(), expireOrder()); !errors.Is(err, archive.ErrTooYoung) {
		t.Errorf("within the retention period that was set: %+v, %v", done, err)
	}
	if err := i.Archivist.SetRetention(t.Context(), operator.MinRetention, "contract over", "boss"); err != nil {
		t.Fatal(err)
	}
	// The records also claim times of a year ago, but the time stamps decide.
	if done, err := i.Archivist.Expire(t.Context(), archive.ExpireOrder{Before: time.Now().AddDate(-1, 0, -1), Reason: "r", By: "b"}); err != nil || done.Records > 0 {
		t.Errorf("stamped later than they claim: %+v, %v", done, err)
	}
	for _, o := range []archive.HoldOrder{{All: true}, {RecordID: apart.Payload.RecordID}} {
		o.Reason, o.By = "case 18", "legal"
		hold, err := i.Archivist.Hold(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		var held *archive.HeldError
		if _, err := i.Eraser.Erase(t.Context(), order(apart, "/prompt")); !errors.As(err, &held) || held.Hold.ID != hold {
			t.Errorf("an erasure of what is held: %v", err)
		}
		wantDisclosed(t, i, apart, "/prompt")
		if o.All {
			if done, err := i.Archivist.Expire(t.Context(), expireOrder()); err != nil || done.Records > 0 || done.Held != storage.TileWidth {
				t.Errorf("all is held: %+v, %v", done, err)
			}
		}
		if _, err := i.Archivist.Release(t.Context(), hold, "over", "legal"); err != nil {
			t.Fatal(err)
		}
	}
	wantThere(t, i, alone)
	for _, bad := range []archive.HoldOrder{{Reason: "r", By: "b"}, {RecordID: "no such record", Reason: "r", By: "b"}, {Chain: "c-1", By: "b"}, {Chain: "c-1", Reason: "r"}} {
		if id, err := i.Archivist.Hold(t.Context(), bad); err == nil {
			t.Errorf("%+v: held by %s", bad, id)
		}
	}
	if _, err := i.Eraser.Erase(t.Context(), withQuotes(order(apart, "/prompt"))); err != nil {
		t.Errorf("an erasure of a record that is no longer on hold: %v", err)
	}
}

// withQuotes erases although the text also occurs elsewhere.
func withQuotes(o erasure.Order) erasure.Order {
	o.DespiteQuotes = true
	return o
}

// TestExpireCrash crashes after each step. The next run completes what an act states. Until then, fsck says what to do.
func TestExpireCrash(t *testing.T) {
	for n := 1; ; n++ {
		c, i, alone, _, apart := aYearAgo(t)
		var steps []string
		var err error
		crashed := crash(i, n, func() { _, err = i.Archivist.Expire(t.Context(), expireOrder()) })
		if err != nil {
			t.Fatal(err)
		}
		i.After(func(step string) { steps = append(steps, step) })
		if err := i.Close(); err != nil {
			t.Fatal(err)
		}
		i = open(t, c)
		book, err := i.Archivist.Book(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sealed := len(book.Expiries) > 0
		if !sealed {
			wantThere(t, i, alone)
		}
		damages, _, err := installation.Fsck(t.Context(), c, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range damages {
			if d.Kind != fsck.DamageStray && d.Kind != fsck.DamageNotExpired && d.Kind != fsck.DamageOrphan || d.Kind == fsck.DamageNotExpired && !sealed {
				t.Errorf("after %d steps: %v", n, d)
			}
		}
		done, err := i.Archivist.Expire(t.Context(), expireOrder())
		if err != nil {
			t.Fatalf("after %d steps: %v", n, err)
		}
		wantExpired(t, i, alone)
		if opens(t.Context(), i, apart) {
			t.Errorf("after %d steps a text of an expired record can be opened", n)
		}
		if book, err = i.Archivist.Book(t.Context()); err != nil || len(book.Expiries) != 1 {
			t.Errorf("after %d steps %d acts, %v; %+v", n, len(book.Expiries), err, done)
		}
		damages, _, err = installation.Fsck(t.Context(), c, nil)
		for _, d := range damages {
			if d.Kind != fsck.DamageStray {
				t.Errorf("after %d steps and another run: %v", n, d)
			}
		}
		if err != nil {
			t.Error(err)
		}
		if !crashed {
			break
		}
	}
}

// TestExpireWhileHeld puts a record on hold while another caller deletes it. It must be either on hold, or deleted
// before the hold.
func TestExpireWhileHeld(t *testing.T) {
	_, i, _, chained, _ := aYearAgo(t)
	var wg sync.WaitGroup
	var first sync.Once
	i.After(func(step string) {
		if step == "file without them written" {
			first.Do(func() {
				if _, err := i.Archivist.Hold(context.Background(), archive.HoldOrder{Chain: "c-1", Reason: "case 19", By: "legal"}); err != nil {
					t.Error(err)
				}
			})
		}
	})
	for range 2 {
		wg.Go(func() {
			if _, err := i.Archivist.Expire(context.Background(), expireOrder()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	wantThere(t, i, chained)
}

// TestExpireTwice runs two deletions at once, one of which deletes more. What the acts state must be exactly what is
// deleted, file by file.
func TestExpireTwice(t *testing.T) {
	then := time.Now().AddDate(0, 0, -400)
	c := installation.Config{Dir: filepath.Join(t.TempDir(), "data"), Now: func() time.Time { return then }}
	past, _, err := installation.OpenOrCreate(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for _, young := range []int{0, storage.TileWidth / 2} { // in each file
		then = time.Now().AddDate(0, 0, -400)
		sealMany(t, past, storage.TileWidth-young)
		then = time.Now().AddDate(0, 0, -300)
		sealMany(t, past, young+10)
		if _, err := past.Archivist.Archive(t.Context(), tomorrow()); err != nil {
			t.Fatal(err)
		}
	}
	if err := past.Close(); err != nil {
		t.Fatal(err)
	}
	c.Now = nil
	i := open(t, c)
	sealMany(t, i, 1) // an act that gives the log the present date
	order := func(days int) archive.ExpireOrder {
		return archive.ExpireOrder{Before: time.Now().AddDate(0, 0, days), Reason: "r", By: "b"}
	}
	var done [2]*archive.Expired
	other, first := make(chan error, 1), order(-200)
	var once sync.Once
	first.Progress = func(string, int64, int64) { // it has listed two files, and has finished one
		once.Do(func() {
			go func() {
				var err error
				done[1], err = i.Archivist.Expire(context.Background(), order(-350))
				other <- err
			}()
			select {
			case err := <-other: // nothing made it wait
				other <- err
			case <-time.After(2 * time.Second):
			}
		})
	}
	if done[0], err = i.Archivist.Expire(t.Context(), first); err != nil {
		t.Error(err)
	}
	if err := <-other; err != nil {
		t.Error(err)
	}
	book, err := i.Archivist.Book(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	said, gone := int64(0), int64(0)
	for _, x := range book.Expiries {
		said += x.Count
	}
	for from := int64(0); from < 2*storage.TileWidth; from++ {
		rows, err := i.Ledger.RowsFrom(t.Context(), from, 1)
		if err != nil {
			t.Fatal(err)
		}
		if rows[0].ExpiredBy != "" {
			gone++
		}
	}
	if said != gone || gone == 0 || done[0].Records+done[1].Records != gone || len(strays(t, i)) > 0 {
		t.Errorf("acts state %d, the runs %d and %d, and %d are deleted; strays %v", said, done[0].Records, done[1].Records, gone, strays(t, i))
	}
	wantWhole(t, c)
}

// TestExpireWithoutItsFolder: while the archive files are missing, a deletion does not count as done. It is finished
// when they are back.
func TestExpireWithoutItsFolder(t *testing.T) {
	c, i, alone, _, apart := aYearAgo(t)
	archives, away := i.Archivist.Folder.Path("."), i.Archivist.Folder.Path(".")+".away"
	i.After(func(step string) {
		if step == "expiry sealed" {
			if err := errors.Join(os.Rename(archives, away), os.Mkdir(archives, 0o700)); err != nil {
				t.Error(err)
			}
		}
	})
	if _, err := i.Archivist.Expire(t.Context(), expireOrder()); err == nil {
		t.Error("deleted, without the file")
	}
	i.After(func(string) {})
	if _, err := i.Archivist.Expire(t.Context(), expireOrder()); err == nil {
		t.Error("finished, without the file")
	}
	if err := errors.Join(os.Remove(archives), os.Rename(away, archives)); err != nil {
		t.Fatal(err)
	}
	if done, err := i.Archivist.Expire(t.Context(), expireOrder()); err != nil || done.Finished != 1 {
		t.Errorf("%+v, %v", done, err)
	}
	wantExpired(t, i, alone)
	if opens(t.Context(), i, apart) {
		t.Error("a text of an expired record can be opened")
	}
	wantWhole(t, c)
}

// forgeExpiry removes a record from its archive in the name of an act that does not state it.
func forgeExpiry(t *testing.T, i *installation.Installation, r *evidence.Record, act string) error {
	t.Helper()
	index, err := i.Ledger.Index(t.Context(), r)
	if err != nil {
		return err
	}
	files, err := i.Ledger.Archives(t.Context())
	if err != nil {
		return err
	}
	source, err := i.Archivist.Source(t.Context(), files[0].From, files[0].To)
	if err != nil {
		return err
	}
	next, err := i.Archivist.Folder.Create(t.Context(), source.Without(map[int64]bool{index: true}, act))
	if err != nil {
		return err
	}
	next.Shed = true
	return i.Ledger.PutArchive(t.Context(), files[0].Digest, next)
}

// TestForgedExpiry removes a record from an archive without an act. Fsck must report it.
func TestForgedExpiry(t *testing.T) {
	c, i, alone, _, _ := aYearAgo(t)
	if err := forgeExpiry(t, i, alone, "no-such-act"); err != nil {
		t.Fatal(err)
	}
	wantExpired(t, i, alone)
	wantKinds(t, c, fsck.DamageExpired, fsck.DamageStray)
}

// TestNothingIsGoneInTheNameOfAnAct: a record on hold is removed from its archive by hand, in the name of an act that
// deleted others. Fsck must not count it among them.
func TestNothingIsGoneInTheNameOfAnAct(t *testing.T) {
	c, i, _, chained, _ := aYearAgo(t)
	if _, err := i.Archivist.Hold(t.Context(), archive.HoldOrder{Chain: "c-1", Reason: "case 17", By: "legal"}); err != nil {
		t.Fatal(err)
	}
	done, err := i.Archivist.Expire(t.Context(), expireOrder())
	if err != nil {
		t.Fatal(err)
	}
	wantWhole(t, c)
	if err := forgeExpiry(t, i, chained, done.Files[0].Act); err != nil {
		t.Fatal(err)
	}
	damages, _, err := installation.Fsck(t.Context(), c, nil)
	if err != nil || !slices.ContainsFunc(damages, func(d fsck.Damage) bool {
		return d.Kind == fsck.DamageExpired && strings.Contains(d.Detail, "are gone in its name")
	}) {
		t.Errorf("%v, %v", damages, err)
	}
}

// TestFsckWhileExpiring deletes records while the log is examined. The examination has already read the older decisions,
// and must still report no damage.
func TestFsckWhileExpiring(t *testing.T) {
	for n := 1; ; n++ { // at each call of progress in turn
		c, i, _, _, _ := aYearAgo(t)
		calls := 0
		damages, _, err := installation.Fsck(t.Context(), c, func(int64, int64) {
			if calls++; calls != n {
				return
			}
			if done, err := i.Archivist.Expire(t.Context(), expireOrder()); err != nil || done.Records == 0 {
				t.Errorf("%+v, %v", done, err)
			}
		})
		if err != nil || len(damages) > 0 {
			t.Errorf("expired at call %d: %v, %v", n, damages, err)
		}
		if calls < n {
			return
		}
		if err := i.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
