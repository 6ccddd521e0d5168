package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"jurat/evidence"
	"jurat/internal/bench"
)

type benchCmd struct {
	Seal   benchSealCmd   `cmd:"" help:"Sealing: many callers at once, and one caller."`
	Verify benchVerifyCmd `cmd:"" help:"Verifying: record by record, and a whole log."`
	Ledger benchLedgerCmd `cmd:"" help:"Appending to a large log, beside a small one."`
	Trial  benchTrialCmd  `cmd:"" help:"Trials with slow jurors: how much time the program itself adds."`
	Watch  benchWatchCmd  `cmd:"" help:"A trial with many watchers over WebSocket, beside one without watchers."`
	Record benchRecordCmd `cmd:"" help:"A recorder between an agent and its models, beside a proxy that records nothing."`
	Find   benchFindCmd   `cmd:"" help:"Finding records and trials in a large log, and starting a server on it."`
}

const aboutBench = `
Everything happens in a temporary installation, which is removed in the end, also after Ctrl-C. --dir says on which disk it is:
what the disk takes to sync is a good part of most figures. Your own log is not touched: --data and --db mean nothing here, and the database is SQLite.

How to read it: a figure alone says something of this machine at this moment. So beside it stands its limit: what the same cannot
do without (bare signatures, a synced page, the slowest juror), measured in the same run and in turn with it, so that what disturbs
the machine disturbs both. The ratio travels from machine to machine. Of a rate, 1.00 is the best there can be and less is worse;
of a time or a size, 1.00 is the best and more is worse. A high load average says that others were at work: measure again.`

type benchFlags struct {
	Dir  string  `help:"The folder on whose disk the temporary installation is made. Default: the system's folder for temporary files." placeholder:"DIR"`
	Time lasting `help:"About how long to measure." default:"10s"`
	JSON bool    `name:"json" help:"Print the report as JSON."`
}

// several is a number of which there is at least one. To the benchmarks none means that nothing was said.
type several int

// UnmarshalText implements encoding.TextUnmarshaler.
func (n *several) UnmarshalText(text []byte) error {
	read, err := strconv.Atoi(string(text))
	if err != nil || read < 1 {
		return fmt.Errorf("expected a whole number from 1 on, and not %q", text)
	}
	*n = several(read)
	return nil
}

// lasting is a time that is not over at once.
type lasting time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *lasting) UnmarshalText(text []byte) error {
	read, err := time.ParseDuration(string(text))
	if err != nil || read <= 0 {
		return fmt.Errorf("expected a time above zero, such as 500ms, 10s or 2m, and not %q", text)
	}
	*d = lasting(read)
	return nil
}

type benchSealCmd struct {
	benchFlags
	Callers several            `help:"How many seal at the same time." default:"256"`
	Payload several            `help:"Bytes of a payload." default:"2048"`
	Alg     evidence.Algorithm `name:"key-alg" help:"Algorithm of the records' signatures: ES256, RS256 or Ed25519." default:"ES256" enum:"ES256,RS256,Ed25519"`
	Batch   bool               `name:"batch-tokens" help:"One token for all records that wait at the same time, as 'jurat serve --batch-tokens' has it."`
}

// Help is shown by 'jurat bench seal --help'.
func (*benchSealCmd) Help() string {
	return `Seals records as 'jurat seal' and the server do: canonical form, signature, token of the built-in authority, durable in the log. It
measures many callers at once, then one caller, record by record.` + aboutBench + `

    jurat bench seal --dir /var/lib/jurat --json`
}

// Run measures sealing.
func (c *benchSealCmd) Run(ctx context.Context, io stdio) error {
	defer roomy()() // as the server has it
	return c.measure(ctx, io, bench.Seal, bench.Config{Callers: int(c.Callers), Payload: int(c.Payload), Algorithm: c.Alg, Batch: c.Batch})
}

type benchRecordCmd struct {
	benchFlags
	Callers several            `help:"How many call at the same time." default:"64"`
	Payload several            `help:"Bytes of a request." default:"2048"`
	Alg     evidence.Algorithm `name:"key-alg" help:"Algorithm of the records' signatures: ES256, RS256 or Ed25519." default:"ES256" enum:"ES256,RS256,Ed25519"`
}

// Help is shown by 'jurat bench record --help'.
func (*benchRecordCmd) Help() string {
	return `Calls a provider in this process past Go's own reverse proxy, and past a recorder in open and in closed mode, as 'jurat record proxy' has it: with
sealing, on disk. It measures the first and the last byte of a stream, many callers, and an answer of 100 MiB.` + aboutBench
}

// Run measures a recorder.
func (c *benchRecordCmd) Run(ctx context.Context, io stdio) error {
	defer roomy()() // as the recorder has it
	return c.measure(ctx, io, bench.Record, bench.Config{Callers: int(c.Callers), Payload: int(c.Payload), Algorithm: c.Alg})
}

type benchVerifyCmd struct {
	benchFlags
	Records several            `help:"How many records the log has." default:"5000"`
	Payload several            `help:"Bytes of a payload." default:"2048"`
	Alg     evidence.Algorithm `name:"key-alg" help:"Algorithm of the records' signatures: ES256, RS256 or Ed25519." default:"ES256" enum:"ES256,RS256,Ed25519"`
}

// Help is shown by 'jurat bench verify --help'.
func (*benchVerifyCmd) Help() string {
	return `Verifies records as 'jurat verify' does, and examines a log of them as 'jurat log fsck' does.` + aboutBench
}

// Run measures verification.
func (c *benchVerifyCmd) Run(ctx context.Context, io stdio) error {
	return c.measure(ctx, io, bench.Verify, bench.Config{Records: int(c.Records), Payload: int(c.Payload), Algorithm: c.Alg})
}

type benchLedgerCmd struct {
	benchFlags
	Records several            `help:"How many records the large log has. A million takes some minutes and 4 GB." default:"100000"`
	Callers several            `help:"How many seal at the same time." default:"256"`
	Payload several            `help:"Bytes of a payload." default:"2048"`
	Alg     evidence.Algorithm `name:"key-alg" help:"Algorithm of the records' signatures: ES256, RS256 or Ed25519." default:"ES256" enum:"ES256,RS256,Ed25519"`
}

// Help is shown by 'jurat bench ledger --help'.
func (*benchLedgerCmd) Help() string {
	return `Seals a large log, record by record. Then it appends to this log and, in turn, to a log of a thousand records: does the large one
become slower, or hold more memory?` + aboutBench
}

// Run measures appending.
func (c *benchLedgerCmd) Run(ctx context.Context, io stdio) error {
	defer roomy()() // as the server has it
	return c.measure(ctx, io, bench.Ledger, bench.Config{Records: int(c.Records), Callers: int(c.Callers), Payload: int(c.Payload), Algorithm: c.Alg})
}

type benchTrialCmd struct {
	benchFlags
	Trials several `help:"How many trials are under way at the same time." default:"8"`
	Delay  lasting `help:"How long the slowest juror takes for an answer." default:"200ms"`
}

// Help is shown by 'jurat bench trial --help'.
func (*benchTrialCmd) Help() string {
	return `Holds trials of three jurors and a judge who say the same each time, after a while: the slowest as long as --delay says. All speak
at the same time, so a phase is as long as its slowest answer; what a trial takes beyond that is the program's.` + aboutBench
}

// Run measures trials.
func (c *benchTrialCmd) Run(ctx context.Context, io stdio) error {
	defer roomy()() // as the server has it
	return c.measure(ctx, io, bench.Trial, bench.Config{Callers: int(c.Trials), Delay: time.Duration(c.Delay)})
}

type benchWatchCmd struct {
	benchFlags
	Watchers several `help:"How many WebSocket connections watch." default:"1000"`
	Delay    lasting `help:"How long the slowest juror takes for an answer." default:"200ms"`
}

// Help is shown by 'jurat bench watch --help'.
func (*benchWatchCmd) Help() string {
	return `Holds a trial with so many watchers over WebSocket on this machine, in turn with one without watchers. Each watcher must get each event,
in order.` + aboutBench
}

// Run measures watching.
func (c *benchWatchCmd) Run(ctx context.Context, io stdio) error {
	defer roomy()() // as the server has it
	return c.measure(ctx, io, bench.Watch, bench.Config{Watchers: int(c.Watchers), Delay: time.Duration(c.Delay)})
}

type benchFindCmd struct {
	benchFlags
	Records several            `help:"How many records the log has, those of trials included. A million takes some minutes on two cores, and 4 GB." default:"20000"`
	Trials  several            `help:"How many trials the log has." default:"300"`
	Log     string             `help:"Keep the log in this folder, and go on with the log that an earlier run left there. Default: a temporary folder, which is removed." placeholder:"DIR"`
	Batch   bool               `name:"batch-tokens" help:"One token for all records that wait at the same time, as 'jurat serve --batch-tokens' has it. A large log is made sooner."`
	Payload several            `help:"Bytes of a payload." default:"1024"`
	Alg     evidence.Algorithm `name:"key-alg" help:"Algorithm of the records' signatures: ES256, RS256 or Ed25519." default:"ES256" enum:"ES256,RS256,Ed25519"`
}

// Help is shown by 'jurat bench find --help'.
func (*benchFindCmd) Help() string {
	return `Holds trials and seals records in three scripts, makes the index of words, and then searches in turn: for texts that one record has, that many
have, that none has; by actor, time and record; for trials by every filter; for an agent's trials with its numbers; for two trials side by side. It also
looks for cases that need a person, as a server does every two seconds, and starts a server's parts on that log five times. Searches for records verify
who said it, and when, as the server does. With --log the log stays in a folder, and the next run uses it again.` + aboutBench + `

    jurat bench find
    jurat bench find --records 1000000 --trials 20000 --log /var/tmp/large-log`
}

// Run measures finding.
func (c *benchFindCmd) Run(ctx context.Context, io stdio) error {
	defer roomy()() // as the server has it
	return c.measure(ctx, io, bench.Find, bench.Config{Records: int(c.Records), Trials: int(c.Trials), Log: c.Log, Batch: c.Batch, Payload: int(c.Payload), Algorithm: c.Alg})
}

// measure runs a benchmark and prints what it has found.
func (f *benchFlags) measure(ctx context.Context, io stdio, benchmark bench.Benchmark, c bench.Config) error {
	c.Dir, c.Time, c.Progress = f.Dir, time.Duration(f.Time), benchProgress(io)
	r, err := benchmark(ctx, c)
	if err != nil {
		return hint(err, "'jurat bench --help' says what is measured; --dir says where the temporary installation is made")
	}
	if f.JSON {
		return io.json(r)
	}
	return showBench(io, r)
}

// benchProgress tells what is being done, as other commands do.
func benchProgress(io stdio) func(what string, done, total int64) {
	last, tell := "", func(int64, int64) {}
	return func(what string, done, total int64) {
		if what != last {
			last, tell = what, benchTeller(io, what)
		}
		tell(done, total)
	}
}

// benchTeller tells of things in numbers, and of what goes on for a time in parts of a hundred.
func benchTeller(io stdio, what string) func(done, total int64) {
	tell := progress(io, what)
	if strings.Contains(what, "records ") {
		return tell
	}
	last := time.Now()
	return func(done, total int64) {
		if time.Since(last) >= time.Second && total > 0 {
			last = time.Now()
			fmt.Fprintf(io.err, "jurat: %s: %d%%\n", what, max(0, min(100, 100*done/total)))
		}
	}
}

// showBench prints a table: each figure, its limit, and the ratio.
func showBench(io stdio, r *bench.Report) error {
	p := newPrinter(io.out)
	m, s := r.Machine, r.Settings
	p.line("jurat bench %s: %s", r.Benchmark, benchSettings(s))
	p.line("%s, %d cores, %s, %s, %s, load average %.1f before and %.1f after", m.CPU, m.Cores, m.Go, m.OS, m.Disk, m.LoadBefore, m.LoadAfter)
	p.line("")
	for _, f := range r.Figures {
		p.line("%-58s %12s %s", f.Name, significant(f.Value), f.Unit)
		if f.Limit != nil {
			p.line("    %.2f of %s %s: %s", f.Ratio, significant(f.Limit.Value), f.Unit, f.Limit.Name)
		}
	}
	return p.err
}

func benchSettings(s bench.Settings) string {
	var parts []string
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	add(s.Records, "records")
	add(s.Trials, "trials")
	add(s.Callers, "at the same time")
	add(s.Watchers, "watchers")
	add(s.PayloadBytes, "bytes a payload")
	if s.Algorithm != "" {
		parts = append(parts, string(s.Algorithm))
	}
	if s.BatchTokens {
		parts = append(parts, "one token for all that wait")
	}
	return strings.Join(append(parts, fmt.Sprintf("%.0f s", s.Seconds)), ", ")
}

// significant writes as many digits as a measurement has.
func significant(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}
