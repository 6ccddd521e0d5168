package main

import (
	"context"
	"errors"
	"fmt"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/installation"
	"jurat/internal/ledger/storage"
	"jurat/internal/plural"
	"jurat/internal/stamping"
)

// stampFlags say who stamps.
type stampFlags struct {
	TSA []string `name:"tsa" sep:"none" placeholder:"NAME|URL" help:"Have exactly these configured authorities stamp (may be repeated); built-in is the operator's own clock. Default: the built-in one and all of 'jurat tsa list'."`
}

// catchUp asks the authorities for the time stamps that records wait for, and prints how many still wait. It cannot fail: what was
// sealed stays sealed.
func catchUp(ctx context.Context, io stdio, i *installation.Installation) {
	outcomes, err := i.Timekeeper.Stamp(ctx, stamping.Order{CatchUp: true})
	if err != nil {
		fmt.Fprintf(io.err, "jurat: time: asking for what waits: %v\n", err)
	}
	for _, o := range outcomes {
		if o.Records > 0 && i.Timekeeper.Selected(o.Authority) {
			fmt.Fprintf(io.err, "jurat: time: waiting for %s; 'jurat log stamp' asks again%s\n", owed(o.Owed), because(o.Reason))
		}
	}
}

func owed(o storage.Owed) string {
	records := plural.Of(o.Records, "record")
	if o.Records == 1 {
		records = "1 record"
	}
	return fmt.Sprintf("%s since %s (%s)", o.Authority, evidence.FormatTime(o.Since), records)
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

type logStampCmd struct{}

// Run stamps what waits.
func (*logStampCmd) Run(ctx context.Context, a *app, io stdio) error {
	return a.with(ctx, func(i *installation.Installation) error {
		report := map[string]func(done, total int64){}
		outcomes, err := i.Timekeeper.Stamp(ctx, stamping.Order{Progress: func(authority string, done, total int64) {
			if report[authority] == nil {
				report[authority] = progress(io, "stamped by "+authority)
			}
			report[authority](done, total)
		}})
		still := false
		p := newPrinter(io.out)
		for _, o := range outcomes {
			p.line("%s: %d stamped, %d still waiting%s", o.Authority, o.Stamped, o.Records, because(o.Reason))
			still = still || o.Records > 0
			if errors.Is(o.Reason, stamping.ErrNotConfigured) {
				fmt.Fprintf(io.err, "jurat: hint: 'jurat tsa add %s URL --root FILE' adds it again; 'jurat tsa remove %s --forget' gives its stamps up\n",
					o.Authority, o.Authority)
			}
		}
		if len(outcomes) == 0 {
			p.line("nothing waits for a time stamp")
		}
		if err := errors.Join(err, p.err); err != nil || !still {
			return err
		}
		return exitCode(exitUndecided)
	})
}

type logPendingCmd struct {
	JSON bool `name:"json" help:"Print the list as JSON."`
}

// pendingLine is a record that waits, as it is listed.
type pendingLine struct {
	Authority string `json:"authority"`
	Since     string `json:"since"`
	Index     int64  `json:"index"`
	Record    string `json:"record"`
	Stamps    int    `json:"stamps"` // that it has
}

// Run lists what waits.
func (c *logPendingCmd) Run(ctx context.Context, a *app, io stdio) error {
	return a.with(ctx, func(i *installation.Installation) error {
		lines, err := pending(ctx, i)
		if err != nil {
			return err
		}
		if c.JSON {
			return io.json(lines)
		}
		p := newPrinter(io.out)
		t := table{heads: []head{{name: "authority", rank: 2}, {name: "since", rank: 3}, {name: "record", rank: 1}, {name: "index", right: true}, {name: "time stamps", right: true}}}
		for _, l := range lines {
			t.row(l.Authority, l.Since, l.Record, l.Index, l.Stamps)
		}
		p.table(&t)
		if len(lines) == 0 {
			p.line("nothing waits for a time stamp")
		}
		return errors.Join(p.err, tellDue(ctx, io, i))
	})
}

func pending(ctx context.Context, i *installation.Installation) ([]pendingLine, error) {
	owing, err := i.Ledger.Owing(ctx)
	if err != nil {
		return nil, err
	}
	lines := []pendingLine{}
	for _, o := range owing {
		for from := int64(0); ; {
			page, err := i.Ledger.Waiting(ctx, o.Authority, from, operator.MaxLateStamps)
			if err != nil {
				return nil, err
			}
			if len(page) == 0 {
				break
			}
			for _, w := range page {
				lines = append(lines, pendingLine{Authority: w.Authority, Since: evidence.FormatTime(w.Since), Index: w.Index,
					Record: w.Record.Payload.RecordID, Stamps: len(w.Record.Timestamps)})
				from = w.Index + 1
			}
		}
	}
	return lines, nil
}
