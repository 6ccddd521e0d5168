// Package bench measures this program, and in the same run, alternating with it, the basic operations that it needs: signatures, time
// stamps, a synced page, a database commit, the slowest juror. A figure belongs to one machine at one moment. Its ratio to such a limit can
// be compared, since a disturbance of the machine affects both.
//
// A benchmark makes a temporary installation in a folder that the caller names, and removes it. It never touches a log that is in use.
// Every benchmark refuses a Config that is not valid. It passes on the errors of its installation and of the file system, and the context's.
package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"jurat/evidence"
	"jurat/internal/installation"
)

// Config says what to measure, and how.
type Config struct {
	Dir       string             // the folder in which the temporary installation is made; "": the system's folder for temporary files
	Callers   int                // how many callers seal, or hold trials, at the same time; 0: 256, and 8 for trials
	Time      time.Duration      // the approximate duration; 0: 10 s
	Payload   int                // the approximate size of a payload in bytes; 0: 2048
	Algorithm evidence.Algorithm // the algorithm of the records' signatures; "": ES256
	Batch     bool               // one token for the records of a transaction, see installation.Config
	Records   int                // the size of Ledger's large log, and how many records Verify verifies; 0: 100,000, and 5,000; of Find's log: 20,000
	Trials    int                // how many trials the log of Find has; 0: 300
	Log       string             // the folder in which Find keeps its log; it goes on with the log that is there. "": the log is removed
	Watchers  int                // the number of connections in Watch, and of idle streams in Record; 0: 1,000
	Delay     time.Duration      // how long the slowest juror of Trial and Watch takes to answer; 0: 200 ms

	Progress func(what string, done, total int64) // called during the run; nil: progress is not reported
}

func (c Config) complete() Config {
	set := func(to *int, value int) {
		if *to == 0 {
			*to = value
		}
	}
	set(&c.Payload, 2048)
	set(&c.Watchers, 1000)
	if c.Time == 0 {
		c.Time = 10 * time.Second
	}
	if c.Delay == 0 {
		c.Delay = 200 * time.Millisecond
	}
	if c.Algorithm == "" {
		c.Algorithm = evidence.ES256
	}
	if c.Dir == "" {
		c.Dir = os.TempDir()
	}
	if c.Progress == nil {
		c.Progress = func(string, int64, int64) {}
	}
	return c
}

func (c Config) check() error {
	for name, n := range map[string]int{"callers": c.Callers, "payload": c.Payload, "records": c.Records, "watchers": c.Watchers, "trials": c.Trials} {
		if n < 0 {
			return fmt.Errorf("%s: %d is negative", name, n)
		}
	}
	if c.Time < 0 || c.Delay < 0 {
		return errors.New("a time is negative")
	}
	if c.Payload > 0 && c.Payload < minPayload {
		return fmt.Errorf("payload: a payload has at least %d bytes", minPayload)
	}
	return nil
}

// A Report is the result of a benchmark.
type Report struct {
	Benchmark string   `json:"benchmark"`
	Machine   Machine  `json:"machine"`
	Settings  Settings `json:"settings"`
	Figures   []Figure `json:"figures"`
}

// Settings are the settings that influenced the figures.
type Settings struct {
	Callers      int                `json:"callers,omitzero"`
	PayloadBytes int                `json:"payload_bytes,omitzero"`
	Algorithm    evidence.Algorithm `json:"algorithm,omitzero"`
	BatchTokens  bool               `json:"batch_tokens,omitzero"`
	Records      int                `json:"records,omitzero"`
	Trials       int                `json:"trials,omitzero"`
	Watchers     int                `json:"watchers,omitzero"`
	Seconds      float64            `json:"seconds"` // the duration of the whole benchmark
}

// A Figure is a measured value with its limit.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Limit *Limit  `json:"limit,omitzero"` // nil: the figure is itself a limit, or has none
	Ratio float64 `json:"ratio,omitzero"` // the value divided by the limit; 0: there is no limit
}

// A Limit is what bounds a figure. It is measured in the same run, alternating with the figure.
type Limit struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

// figure adds a figure, and its ratio if it has a limit.
func (r *Report) figure(name, unit string, value float64, limit *Limit) {
	f := Figure{Name: name, Unit: unit, Value: value, Limit: limit}
	if limit != nil && limit.Value > 0 {
		f.Ratio = value / limit.Value
	}
	r.Figures = append(r.Figures, f)
}

// Of returns the figure whose name has this prefix, or nil.
func (r *Report) Of(name string) *Figure {
	i := slices.IndexFunc(r.Figures, func(f Figure) bool { return strings.HasPrefix(f.Name, name) })
	if i < 0 {
		return nil
	}
	return &r.Figures[i]
}

// A Benchmark runs one benchmark. It returns an error if the configuration is not valid, or if the context ends.
type Benchmark func(ctx context.Context, c Config) (*Report, error)

// run makes a folder for a benchmark, runs it, and reports the machine.
func run(c Config, name string, do func(c Config, dir string, r *Report) error) (r *Report, err error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("bench %s: %w", name, err)
	}
	c = c.complete()
	dir, err := os.MkdirTemp(c.Dir, "jurat-bench-*")
	if err != nil {
		return nil, fmt.Errorf("bench %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r = &Report{Benchmark: name, Machine: machineOf(dir)}
	begin := time.Now()
	if err := do(c, dir, r); err != nil {
		return nil, fmt.Errorf("bench %s: %w", name, err)
	}
	r.Settings.Seconds = time.Since(begin).Seconds()
	r.Machine.LoadAfter = loadAverage()
	return r, nil
}

// A house is a temporary installation like that of a user: on disk, durable, with its own authority.
type house struct {
	*installation.Installation
	config  installation.Config
	draft   *evidence.Draft
	signers []evidence.Signer
}

func furnish(ctx context.Context, c Config, dir, name string) (*house, error) {
	config := installation.Config{Dir: filepath.Join(dir, name), Algorithm: c.Algorithm, BatchTokens: c.Batch}
	if err := installation.Create(ctx, config); err != nil {
		return nil, err
	}
	i, err := installation.Open(ctx, config)
	if err != nil {
		return nil, err
	}
	h := &house{Installation: i, config: config}
	if h.signers, err = i.Keys.Signers(ctx, evidence.RoleAgent, agent); err == nil {
		h.draft, err = draftOf(c.Payload)
	}
	if err != nil {
		return nil, errors.Join(err, i.Close())
	}
	return h, nil
}

const (
	agent = "agent-7"
	frame = `{"agent_id":"` + agent + `","request_id":"req-1","timestamp":"2026-01-31T16:15:00Z","model":"m","model_version":"1",` +
		`"parameters":{"temperature":0.5},"prompt":"May I send the parcel?","response":%q}`
	added      = 220 // the bytes that sealing adds: record_id, schema, action_type, signers
	minPayload = 600
)

// draftOf returns a draft whose sealed payload has about size bytes.
func draftOf(size int) (*evidence.Draft, error) {
	const sentence = "It is 17 km away. "
	n := max(1, size-added-len(frame))
	text := strings.Repeat(sentence, n/len(sentence)+1)[:n]
	return evidence.ParseDraft(fmt.Appendf(nil, frame, text))
}

func (h *house) seal(ctx context.Context) error {
	_, err := h.Ledger.Seal(ctx, h.draft, h.signers)
	return err
}
