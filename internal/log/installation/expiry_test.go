package installation_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/log/installation"
	"jurat/internal/log/ledger"
	"jurat/internal/log/ledger/fsck"
	"jurat/internal/log/ledger/sqlite"
	"jurat/internal/log/ledger/storage"
	"jurat/internal/log/lock"
	"jurat/internal/test/must"
	"jurat/internal/test/rig"
)

// old is how many records aYearAgo seals beside the named ones.
const old = 381

// sealMany seals records. Every tenth is in a chain.
func sealMany(t testing.TB, i *installation.Installation, n int) {
	t.Helper()
	signers := get(i.Keys.Signers(t.Context(), evidence.RoleAgent, "courier"))
	var wg sync.WaitGroup
	for k := range 32 {
		wg.Go(func() {
			for m := k; m < n; m += 32 {
				text := fmt.Sprintf(`{"agent_id":"courier","request_id":"r-%d","timestamp":"2024-01-31T16:15:00Z","model":"m","model_version":"1","prompt":%q,"response":"r","parameters":{}}`,
					m, strings.Repeat("May I send the parcel? ", 20))
				d, err := evidence.ParseDraft([]byte(text))
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := i.Ledger.Seal(context.Background(), d, signers); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func entries(t testing.TB, i *installation.Installation) (all []string) {
	t.Helper()
	size := get(i.Ledger.Size(t.Context()))
	for e, err := range i.Ledger.Entries(t.Context(), 0, size) {
		must.Do(t, err)
		all = append(all, string(e))
	}
	return all
}

// A pattern is an installation that tests copy: to make it and seal its records takes longer. TestMain removes it.
type pattern struct {
	once sync.Once
	dir  string
}

// copied returns a copy of the pattern. make makes an installation in a folder, and closes it.
func (p *pattern) copied(t *testing.T, make func(t *testing.T, c installation.Config)) installation.Config {
	t.Helper()
	p.once.Do(func() {
		p.dir = get(os.MkdirTemp("", "jurat-pattern-"))
		make(t, installation.Config{Dir: filepath.Join(p.dir, "data")})
	})
	c := installation.Config{Dir: filepath.Join(t.TempDir(), "data")}
	out, err := exec.Command("cp", "-a", filepath.Join(p.dir, "data"), c.Dir).CombinedOutput()
	must.Need(t, err == nil, "%v: %s", err, out)
	return c
}

var yearOld struct {
	pattern
	alone, chained, apart *evidence.Record
}

func sealAYearAgo(t *testing.T, c installation.Config) {
	then := time.Now().AddDate(-1, 0, 0)
	c.Now = func() time.Time { return then }
	past, _, err := installation.OpenOrCreate(t.Context(), c)
	must.Do(t, err)
	sealed := func(text string, apart ...string) *evidence.Record {
		d := get(evidence.ParseDraft([]byte(text)))
		return get(past.Ledger.Seal(t.Context(), d.SealingApart(nil, apart...), get(past.Keys.Signers(t.Context(), evidence.RoleAgent, "courier"))))
	}
	const frame = `{"agent_id":"courier","request_id":"r","timestamp":"2024-01-31T16:15:00Z","model":"m","model_version":"1","prompt":"the parcel of Anna","response":"r","parameters":{}%s}`
	yearOld.alone, yearOld.apart = sealed(fmt.Sprintf(frame, "")), sealed(fmt.Sprintf(frame, ""), "/prompt")
	yearOld.chained = sealed(fmt.Sprintf(frame, `,"chain_id":"c-1","chain_position":1`))
	sealMany(t, past, old)
	must.Do(t, past.Close())
}

// aYearAgo returns an installation whose records were sealed a year ago: some alone, some in the chain "c-1", one with a
// text sealed apart. It is opened with the present clock.
func aYearAgo(t *testing.T) (c installation.Config, i *installation.Installation, alone, chained, apart *evidence.Record) {
	t.Helper()
	c = yearOld.copied(t, sealAYearAgo)
	i = open(t, c)
	sealMany(t, i, 1) // the log's own time must be the present
	return c, i, yearOld.alone, yearOld.chained, yearOld.apart
}

func expireOrder() installation.ExpiryOrder {
	return installation.ExpiryOrder{Before: time.Now().AddDate(0, -7, 0), Reason: "retention time over", By: "records office"}
}

func wantExpired(t *testing.T, i *installation.Installation, r *evidence.Record) {
	t.Helper()
	_, err := i.Ledger.Record(t.Context(), r.Payload.RecordID)
	must.Hold(t, errors.Is(err, ledger.ErrExpired) && !errors.Is(err, ledger.ErrNotFound), "record %s: %v", r.Payload.RecordID, err)
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

// opens reports whether a text of a record that is sealed apart can be read.
func opens(ctx context.Context, i *installation.Installation, r *evidence.Record) bool {
	disclosed, err := i.Apart.Disclose(ctx, r, nil)
	return err == nil && len(disclosed.Disclosures) > 0
}

// marks are bytes of what old records are stored as, which is compressed.
func marks(t *testing.T, c installation.Config) (list [][]byte) {
	t.Helper()
	s := get(sqlite.Open(t.Context(), filepath.Join(c.Dir, installation.DatabaseFile)))
	defer s.Close()
	rows := get(s.Rows(t.Context(), 0, 1<<20))
	for n, r := range rows {
		record, err := r.Record()
		if err != nil || record.Payload.ActionType.ByOperator() || n%7 != 0 && len(record.Payload.SealedApart) == 0 {
			continue
		}
		list = append(list, r.Packed.Blob[len(r.Packed.Blob)/2:][:16], r.Packed.Blob[len(r.Packed.Blob)-16:])
	}
	must.Need(t, len(list) != 0, "there is nothing to look for")
	return list
}

// wantNoMarks searches every file of a data folder for bytes of rows.
func wantNoMarks(t *testing.T, dir string, marks [][]byte) {
	t.Helper()
	for path, content := range rig.Files(t, dir) {
		for n, mark := range marks {
			must.Hold(t, !bytes.Contains(content, mark), "%s has mark %d of %d", path, n, len(marks))
		}
	}
}

// TestExpire removes the content of old records. Excepted chains and what somebody needs stay, and every other proof
// stays valid.
func TestExpire(t *testing.T) {
	c, i, alone, chained, apart := aYearAgo(t)
	hashed, there := entries(t, i), marks(t, c)
	o := expireOrder()
	o.Except = []string{"c-1"}
	o.Stays = func(context.Context) (*installation.ExpiryStaying, error) {
		return &installation.ExpiryStaying{Records: map[evidence.Digest]bool{alone.Digest: true}}, nil
	}
	dry := o
	dry.DryRun = true
	if done, err := i.Expire(t.Context(), dry); err != nil || done.Records != old+1 || done.Excepted != 1 || done.Needed != 1 || done.Act != "" {
		t.Fatalf("dry run: %+v, %v", done, err)
	}
	wantThere(t, i, alone)
	wantThere(t, i, apart)
	done, err := i.Expire(t.Context(), o)
	must.Need(t, err == nil && done.Records == old+1 && done.Excepted == 1 && done.Needed == 1 && done.Unproved == 0 && done.Waiting == 0 && done.Act != "",
		"%+v, %v", done, err)
	wantExpired(t, i, apart)
	wantThere(t, i, chained)
	wantThere(t, i, alone)
	must.Hold(t, !opens(t.Context(), i, apart), "the text that was sealed apart can still be opened")
	must.Refuse(t, done.Act, "the error names no act")(i.Ledger.Record(t.Context(), apart.Payload.RecordID))
	act := get(i.Ledger.Record(t.Context(), done.Act))
	body, err := operator.ReadExpiry(&act.Payload)
	must.Hold(t, err == nil && body.Count == done.Records && body.By == o.By && cmp.Equal(body.Except, o.Except), "the act: %+v, %v", body, err)
	wantProved(t, i, act)
	must.Equal(t, cmp.Diff(hashed, entries(t, i)[:len(hashed)]), "", "entries (-before +after):\n")
	wantWhole(t, c)
	seen := int64(0)
	for r, err := range i.Ledger.Records(t.Context(), 0) {
		must.Do(t, err)
		seen++
		wantProved(t, i, r.Record)
	}
	size, err := i.Ledger.Size(t.Context())
	must.Hold(t, err == nil && seen == size-done.Records, "%d records of %d, %v", seen, size, err)
	done, err = i.Expire(t.Context(), o)
	must.Hold(t, err == nil && done.Records == 0 && done.Act == "", "a second time: %+v, %v", done, err)
	done, err = i.Expire(t.Context(), expireOrder())
	must.Hold(t, err == nil && done.Records == 2, "%+v, %v", done, err)
	wantExpired(t, i, chained)
	wantExpired(t, i, alone)
	wantError(t, "the chain", ledger.ErrExpired, errorOf(i.Ledger.Chain(t.Context(), "c-1")))
	wantWhole(t, c)
	wantNoMarks(t, c.Dir, there)
	copied := filepath.Join(t.TempDir(), "copy")
	get(installation.MakeBackup(t.Context(), c, installation.BackupOrder{To: copied, ApartKeys: true}))
	wantNoMarks(t, filepath.Dir(copied), there)
	restored := installation.Config{Dir: filepath.Join(t.TempDir(), "data")}
	get(installation.Restore(t.Context(), restored, installation.RestoreOrder{From: copied, NoneLater: true}))
	wantExpired(t, open(t, restored), alone)
}

// TestExpireRefuses asks for what is not allowed.
func TestExpireRefuses(t *testing.T) {
	_, i, alone, _, _ := aYearAgo(t)
	for name, change := range map[string]func(*installation.ExpiryOrder){
		"younger than six months": func(o *installation.ExpiryOrder) { o.Before = time.Now().AddDate(0, 0, -operator.MinRetention+1) },
		"to come":                 func(o *installation.ExpiryOrder) { o.Before = time.Now().AddDate(1, 0, 0) },
		"no time":                 func(o *installation.ExpiryOrder) { o.Before = time.Time{} },
		"no reason":               func(o *installation.ExpiryOrder) { o.Reason = " " },
		"nobody":                  func(o *installation.ExpiryOrder) { o.By = "" },
		"what stays is unknown": func(o *installation.ExpiryOrder) {
			o.Stays = func(context.Context) (*installation.ExpiryStaying, error) { return nil, errors.New("no") }
		},
	} {
		o := expireOrder()
		change(&o)
		done, err := i.Expire(t.Context(), o)
		must.Hold(t, err != nil, "%s: %+v", name, done)
	}
	// The records also claim times of a year ago, but the time stamps decide.
	done, err := i.Expire(t.Context(), installation.ExpiryOrder{Before: time.Now().AddDate(-1, 0, -1), Reason: "r", By: "b"})
	must.Hold(t, err == nil && done.Records <= 0, "stamped later than they claim: %+v, %v", done, err)
	wantThere(t, i, alone)
}

// TestExpireByAClockThatIsAhead: the log's time decides, not this machine's clock.
func TestExpireByAClockThatIsAhead(t *testing.T) {
	c, i := anew(t)
	sealMany(t, i, 20)
	must.Do(t, i.Close())
	c.Now = func() time.Time { return time.Now().AddDate(1, 0, 0) }
	i = open(t, c)
	o := expireOrder()
	o.Before = time.Now().AddDate(0, 0, 2)
	done, err := i.Expire(t.Context(), o)
	must.Hold(t, errors.Is(err, installation.ErrTooYoung) && done.Records <= 0, "removed by this machine's clock alone: %+v, %v", done, err)
	sealMany(t, i, 1) // an authority confirms the time
	done, err = i.Expire(t.Context(), o)
	must.Hold(t, err == nil && done.Records != 0, "%+v, %v", done, err)
}

// TestExpireCrash crashes after each step. Opening the installation completes what an act states.
func TestExpireCrash(t *testing.T) {
	for n := 1; ; n++ {
		c, i, alone, _, apart := aYearAgo(t)
		there := marks(t, c)
		var err error
		crashed := crash(i, n, func() { _, err = i.Expire(t.Context(), expireOrder()) })
		must.Do(t, err)
		i.After(func(string) {})
		must.Do(t, i.Close())
		damages, _, err := installation.Fsck(t.Context(), c, nil)
		for _, d := range damages {
			must.Hold(t, d.Kind == fsck.DamageNotExpired || d.Kind == fsck.DamageApartLost, "after %d steps: %v", n, d)
		}
		must.Do(t, err)
		i = open(t, c)
		gone := get(i.Expired(t.Context()))
		if gone == 0 {
			wantThere(t, i, alone)
		} else {
			wantExpired(t, i, alone)
		}
		wantWhole(t, c)
		if _, err := i.Expire(t.Context(), expireOrder()); err != nil {
			t.Fatalf("after %d steps: %v", n, err)
		}
		wantExpired(t, i, alone)
		must.Hold(t, !opens(t.Context(), i, apart), "after %d steps a text of an expired record can be opened", n)
		if acts, err := i.Ledger.Chain(t.Context(), operator.ExpiryChain); err != nil || len(acts) != 1 {
			t.Errorf("after %d steps %d acts, %v", n, len(acts), err)
		}
		wantWhole(t, c)
		wantNoMarks(t, c.Dir, there)
		if !crashed {
			break
		}
	}
}

// TestExpiredChainGoesOn: a chain whose records have expired still belongs to the agent that began it, and to no other. That holds in the
// process that knew the chain before, and in one that reads it afterwards.
func TestExpiredChainGoesOn(t *testing.T) {
	c, i, _, chained, _ := aYearAgo(t)
	said := func(i *installation.Installation, agent string) error {
		t.Helper()
		d, err := evidence.ParseDraft(fmt.Appendf(nil, `{"agent_id":%q,"request_id":"r","timestamp":%q,"model":"m","model_version":"1","prompt":"p","response":"r","parameters":{},"chain_id":"c-1"}`,
			agent, evidence.FormatTime(time.Now())))
		must.Do(t, err)
		_, err = i.Ledger.Seal(t.Context(), d, get(i.Keys.Signers(t.Context(), evidence.RoleAgent, agent)))
		return err
	}
	err := said(i, "mallory")
	must.Need(t, errors.Is(err, ledger.ErrNotAdmitted), "%v", err) // now this process knows the chain
	get(i.Expire(t.Context(), expireOrder()))
	wantExpired(t, i, chained)
	for _, i := range []*installation.Installation{open(t, c), i} {
		wantError(t, "another agent", ledger.ErrNotAdmitted, said(i, "mallory"))
		wantError(t, "the chain's owner", nil, said(i, "courier"))
	}
	wantWhole(t, c)
}

// TestExpireInterruptedWhileItReclaims: the next run overwrites what an interrupted one left, although it finds nothing to remove, and
// although another process has the log open all the time.
func TestExpireInterruptedWhileItReclaims(t *testing.T) {
	c, i, _, _, _ := aYearAgo(t)
	there := marks(t, c)
	open(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	i.After(func(step string) {
		if step == "removed" {
			cancel()
		}
	})
	done, err := i.Expire(ctx, expireOrder())
	must.Need(t, errors.Is(err, context.Canceled) && done.Records == old+3, "%+v, %v", done, err)
	done, err = i.Expire(t.Context(), expireOrder())
	must.Need(t, err == nil && done.Records == 0 && done.Act == "", "%+v, %v", done, err)
	wantNoMarks(t, c.Dir, there)
}

// expirerFolder, if set, makes this test binary a process that expires records of that folder and kills itself after a
// number of steps.
const expirerFolder = "JURAT_TEST_EXPIRE"

func expireAndDie(dir string, after int) error {
	i, err := installation.Open(context.Background(), installation.Config{Dir: dir})
	if err != nil {
		return err
	}
	i.After(func(string) {
		if after--; after == 0 {
			self, err := os.FindProcess(os.Getpid())
			if err != nil {
				panic(err)
			}
			if err := self.Kill(); err != nil {
				panic(err)
			}
			select {}
		}
	})
	_, err = i.Expire(context.Background(), expireOrder())
	return errors.Join(err, errors.New("it was not killed"))
}

// TestExpireKilled kills a process that expires records after some steps, while this one seals. The next run goes on: one
// act says what is gone.
func TestExpireKilled(t *testing.T) {
	for _, step := range []string{"1", "4", "8"} {
		c, i, alone, _, apart := aYearAgo(t)
		there := marks(t, c)
		child := exec.CommandContext(t.Context(), get(os.Executable()))
		child.Env = append(os.Environ(), expirerFolder+"="+c.Dir, "JURAT_TEST_STEP="+step)
		child.Stderr = os.Stderr
		must.Do(t, child.Start())
		sealMany(t, i, 20)
		err := child.Wait()
		must.Hold(t, err != nil && !child.ProcessState.Exited(), "step %s: the process ended by itself: %v", step, err)
		get(i.Expire(t.Context(), expireOrder()))
		wantExpired(t, i, alone)
		wantExpired(t, i, apart)
		acts, err := i.Ledger.Chain(t.Context(), operator.ExpiryChain)
		must.Hold(t, err == nil && len(acts) == 1, "step %s: %d acts, %v", step, len(acts), err)
		wantWhole(t, c)
		wantNoMarks(t, c.Dir, there)
	}
}

// TestForgedExpiry: a record whose content was removed without an act is named, and so is an act that is about others.
func TestForgedExpiry(t *testing.T) {
	c, i, alone, _, _ := aYearAgo(t)
	must.Do(t, i.Close())
	s := get(sqlite.Open(t.Context(), filepath.Join(c.Dir, installation.DatabaseFile)))
	row := get(s.ByRecordID(t.Context(), alone.Payload.RecordID))
	const act = "019b76da-a800-7af4-9dc1-0b1e7f1aa123"
	left := get(row.ExpiredRow(act))
	brief := storage.StoredBrief{Index: row.Index, Line: []byte("{}")}
	err := errors.Join(s.PutExpiring(t.Context(), act, []int64{row.Index}), s.Expire(t.Context(), act, []storage.Row{left}, []storage.StoredBrief{brief}), s.Close())
	must.Do(t, err)
	want := func(kinds ...fsck.Kind) {
		t.Helper()
		damages, _, err := installation.Fsck(t.Context(), c, nil)
		var got []fsck.Kind
		for _, d := range damages {
			got = append(got, d.Kind)
		}
		diff := cmp.Diff(kinds, got)
		must.Hold(t, err == nil && diff == "", "%v (-want +got):\n%s\n%v", err, diff, damages)
	}
	want(fsck.DamageExpired)
	i = open(t, c)
	get(i.Expire(t.Context(), expireOrder()))
	want(fsck.DamageExpired)
	changed(t, filepath.Join(c.Dir, installation.DatabaseFile), `INSERT INTO expiring (idx, act) VALUES (9223372036854775807, 'x')`)
	want(fsck.DamageExpired)
}

// TestExpireTwice: two processes do not expire at the same time.
func TestExpireTwice(t *testing.T) {
	c, i, _, _, _ := aYearAgo(t)
	other := open(t, c)
	var once sync.Once
	i.After(func(string) {
		once.Do(func() {
			done, err := other.Expire(context.Background(), expireOrder())
			must.Hold(t, errors.Is(err, lock.ErrTaken), "%+v, %v", done, err)
			wantError(t, "error", nil, other.FinishExpiry(context.Background()))
		})
	})
	done, err := i.Expire(t.Context(), expireOrder())
	must.Hold(t, err == nil && done.Records == old+3, "%+v, %v", done, err)
	wantWhole(t, c)
}
