package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/archive"
	"jurat/internal/installation"
	"jurat/internal/ledger/storage"
	"jurat/verify"
)

// fill N seals N records into the script's installation, and sets FIRST to the id of one of the first.
func fill(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: fill N")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	ctx := context.Background()
	i, err := installation.Open(ctx, installation.Config{Dir: ts.MkAbs("jurat-data")})
	ts.Check(err)
	signers, err := i.Keys.Signers(ctx, evidence.RoleAgent, "filler")
	ts.Check(err)
	one := func(m int) (*evidence.Record, error) {
		d, err := evidence.ParseDraft(fmt.Appendf(nil, `{"agent_id":"filler","request_id":"r-%d","timestamp":"2026-01-31T16:15:00Z","model":"m","model_version":"1",
			"prompt":"May I?","response":"Yes, %d.","parameters":{}}`, m, m))
		if err != nil {
			return nil, err
		}
		return i.Ledger.Seal(ctx, d, signers)
	}
	first, err := one(0)
	ts.Check(err)
	ts.Setenv("FIRST", first.Payload.RecordID)
	failed := make(chan error, n)
	var wg sync.WaitGroup
	for k := range 16 {
		wg.Go(func() {
			for m := 1 + k; m < n; m += 16 {
				if _, err := one(m); err != nil {
					failed <- err
				}
			}
		})
	}
	wg.Wait()
	select {
	case err = <-failed:
	default:
	}
	ts.Check(err)
	ts.Check(i.Close())
}

// TestArchiveWithoutQuorum: if witnesses are demanded and too few have cosigned, 'archive verify' does not report the
// order as proved.
func TestArchiveWithoutQuorum(t *testing.T) {
	l := watchedLog(filepath.Join(t.TempDir(), "data"))
	l.grow(t, 256, "as it was")
	jurat := func(want int, args ...string) string {
		t.Helper()
		return doing(t, want, append([]string{"--data", string(l)}, args...)...)
	}
	jurat(0, "archive", "--before", "2199-01-01")
	jurat(0, "archive", "verify")
	key := doing(t, 0, "witness", "init", "witness.example/w1", "--dir", filepath.Join(t.TempDir(), "w1"))
	jurat(0, "log", "witness", "add", "http://127.0.0.1:1", "--key", key)
	if out := jurat(exitUndecided, "archive", "verify"); !strings.Contains(out, "order: too few witnesses have cosigned the checkpoint: 0 of the 1") {
		t.Error(out)
	}
}

// TestArchiveVerifyExpired: a record may be missing from a file only if an act in the log states its deletion, whatever
// the file itself says.
func TestArchiveVerifyExpired(t *testing.T) {
	l := watchedLog(filepath.Join(t.TempDir(), "data"))
	past, _, err := installation.OpenOrCreate(t.Context(), installation.Config{Dir: string(l), Now: func() time.Time { return time.Now().AddDate(-1, 0, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	growIn(t, past, "courier", 256, "long ago")
	if err := past.Close(); err != nil {
		t.Fatal(err)
	}
	l.grow(t, 1, "today")
	jurat := func(want int, args ...string) string {
		t.Helper()
		return doing(t, want, append([]string{"--data", string(l)}, args...)...)
	}
	jurat(0, "archive", "--before", time.Now().AddDate(0, -7, 0).Format(time.DateOnly))
	trust := filepath.Join(t.TempDir(), "trust.json")
	if err := os.WriteFile(trust, []byte(jurat(0, "trust")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	only := func() string {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(string(l), "archive", "*.jurat-archive"))
		if err != nil || len(files) != 1 {
			t.Fatal(files, err)
		}
		return files[0]
	}
	doing(t, 0, "archive", "verify", "--trust", trust, only())
	jurat(0, "archive", "expire", "--before", time.Now().AddDate(0, -7, 0).Format(time.DateOnly), "--reason", "time over", "--by", "office")
	if out := doing(t, exitUndecided, "archive", "verify", "--trust", trust, only()); !strings.Contains(out, "not proved") ||
		!strings.Contains(out, "expired: 256 records are not there") {
		t.Error(out)
	}
	if out := jurat(0, "archive", "verify"); !strings.Contains(out, "0 are there, 256 have expired") {
		t.Error(out)
	}

	var v archiveVerification // one more than the act counts, and one that no act names
	v.report, v.byAct = &archiveReport{}, map[string]int64{}
	v.book = &archive.Book{Expiries: []archive.Expiry{{ID: "act", ExpiredRecords: operator.ExpiredRecords{From: 0, To: 256, Count: 1}}}}
	for n, act := range []string{"act", "act", "another"} {
		v.record(&storage.Row{Index: int64(n), Entry: []byte("{}"), ExpiredBy: act}, nil)
	}
	if r := v.end(); r.Outcome != verify.NotProved || r.NotProved != 2 {
		t.Errorf("%+v", r)
	}
}
