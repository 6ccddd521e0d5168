package bench

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/installation"
	"jurat/internal/trial"
)

var benchmarks = map[string]struct {
	run     Benchmark
	figures []string // that begin so
}{
	"seal": {Seal, []string{"records/s, 3 callers", "one signature", "one token", "canonical form", "one caller, a record", "one page written",
		"one row committed", "one record with its token", "on disk for each record"}},
	"verify": {Verify, []string{"records verified/s", "a record verified", "records/s of a log examined", "memory while examining", "size of that log"}},
	"ledger": {Ledger, []string{"time of a record, 3 callers", "time of a record, one caller", "memory allocated", "memory that an open log holds"}},
	"trial":  {Trial, []string{"time of a trial, 3 at the same time", "time of a trial (median)", "trials/s", "acts sealed"}},
	"find": {Find, []string{"records indexed/s", "size of the index", "server start, the first", "server start (median)", "server start (99 %)", "search for one record", "search for two words", "search for what nobody said",
		"search for what all", "search by actor", "search by record", "search of a submitter", "trials, all", "trials by agent", "trials by verdict", "trials by submitter", "trials by juror", "trials by text and",
		"trials by text that all", "trials by text that none", "trials by record", "an agent's trials and numbers, the first look", "an agent's trials and numbers, later", "two trials side by side", "the first round of arrivals",
		"a round of arrivals"}},
	"record": {Record, []string{"first byte, open mode", "first byte, closed mode", "last byte of 50 events, open mode", "last byte of 50 events, closed mode", "one page written",
		"calls/s, 3 callers, closed mode", "calls/s, 3 callers, open mode", "processor time of a call", "calls/s that the processors allow", "memory for an answer of 100 MiB, closed",
		"memory for an answer of 100 MiB, the reverse proxy", "memory of an idle stream, of 5, closed mode", "memory of an idle stream, of 5, the reverse"}},
	"watch": {Watch, []string{"time of a trial with 5 watchers"}},
}

func quick(dir string) Config {
	return Config{Dir: dir, Callers: 3, Time: 50 * time.Millisecond, Payload: 700, Records: 1100, Trials: 3, Watchers: 5, Delay: 5 * time.Millisecond}
}

// TestBenchmarks runs each benchmark briefly. It must give every figure with its unit and limit, report progress, and
// leave no files.
func TestBenchmarks(t *testing.T) {
	for name, b := range benchmarks {
		t.Run(name, func(t *testing.T) {
			dir, told := t.TempDir(), false
			c := quick(dir)
			c.Progress = func(what string, done, total int64) { told = told || what != "" && total > 0 }
			r, err := b.run(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if r.Benchmark != name || r.Machine.Cores < 1 || r.Machine.CPU == "" || r.Machine.Go == "" || r.Machine.Disk == "" || r.Settings.Seconds <= 0 {
				t.Errorf("%+v", r)
			}
			for _, figure := range b.figures {
				f := r.Of(figure)
				if f == nil {
					t.Errorf("there is no figure %q", figure)
				} else if f.Value <= 0 || f.Unit == "" || f.Limit != nil && (f.Limit.Name == "" || f.Limit.Value <= 0 || f.Ratio != f.Value/f.Limit.Value) {
					t.Errorf("%+v %+v", f, f.Limit)
				}
			}
			if !told {
				t.Error("no progress was reported")
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("it left %v, %v", left, err)
			}
			if doc, err := json.Marshal(r); err != nil || !strings.Contains(string(doc), `"limit":{"name":`) {
				t.Errorf("%s, %v", doc, err)
			}
		})
	}
}

// TestBrokenOff: an interrupted benchmark leaves nothing behind.
func TestBrokenOff(t *testing.T) {
	for name, b := range benchmarks {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			ctx, cancel := context.WithCancel(t.Context())
			c := quick(dir)
			c.Time = time.Hour
			c.Progress = func(string, int64, int64) { cancel() }
			if _, err := b.run(ctx, c); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v", err)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("it left %v, %v", left, err)
			}
		})
	}
}

// TestKeptLog: a log that is kept is used again, and gets what it lacks. A folder with anything else is refused.
func TestKeptLog(t *testing.T) {
	c := quick(t.TempDir())
	c.Log = filepath.Join(t.TempDir(), "log")
	sizes := func() (records, trials int) {
		h, err := reopen(t.Context(), installation.Config{Dir: c.Log})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		size, err := h.Ledger.Size(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		x := trial.NewIndex(h.Ledger, nil, nil)
		if err := x.Follow(t.Context()); err != nil {
			t.Fatal(err)
		}
		return int(size), len(x.List(nil))
	}
	for i, want := range []struct{ records, trials int }{{1100, 3}, {1100, 3}, {1300, 4}} {
		c.Records, c.Trials = want.records, want.trials
		r, err := Find(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if made := r.Of("records indexed/s") != nil; made != (i == 0) {
			t.Errorf("run %d: the index is made: %t", i, made)
		}
		if records, trials := sizes(); records < want.records || records > want.records+50 || trials != want.trials {
			t.Errorf("run %d: %d records, %d trials; want %+v", i, records, trials, want)
		}
	}
	c.Log = t.TempDir()
	if err := os.WriteFile(filepath.Join(c.Log, "jurat.db"), []byte("a log"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(t.Context(), c); err == nil {
		t.Error("a folder with other files is used")
	}
}

func TestRefuses(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"callers: -1":         func(c *Config) { c.Callers = -1 },
		"watchers: -2":        func(c *Config) { c.Watchers = -2 },
		"at least 600 bytes":  func(c *Config) { c.Payload = 10 },
		"is negative":         func(c *Config) { c.Time = -1 },
		"no such file":        func(c *Config) { c.Dir += "/nowhere" },
		"is not larger than":  func(c *Config) { c.Records = 1000 },
		"algorithm \"ROT13\"": func(c *Config) { c.Algorithm = "ROT13" },
	} {
		c := quick(t.TempDir())
		change(&c)
		if _, err := Ledger(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}

// TestPayload: a payload has about the requested number of bytes.
func TestPayload(t *testing.T) {
	for _, size := range []int{600, 2048, 100_000} {
		h, err := furnish(t.Context(), Config{Payload: size, Algorithm: evidence.ES256}, t.TempDir(), "data")
		if err != nil {
			t.Fatal(err)
		}
		r, err := h.Ledger.Seal(t.Context(), h.draft, h.signers)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(r.Canonical()); n < size-50 || n > size+50 {
			t.Errorf("%d bytes, want about %d", n, size)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestDiskOf(t *testing.T) {
	if _, err := os.Stat("/proc/self/mounts"); err != nil {
		t.Skip("this system has no list of mounts")
	}
	if disk := diskOf("/proc/self"); disk != "proc on proc" {
		t.Errorf("/proc/self is on %q", disk)
	}
}
