package main

import (
	"context"
	"fmt"

	"jurat/evidence"
	"jurat/internal/installation"
	"jurat/internal/ledger/storage"
	"jurat/internal/plural"
	"jurat/internal/stamping"
)

// stampFlags say who stamps.
type stampFlags struct {
	TSA []string `name:"tsa" sep:"none" placeholder:"NAME|URL" help:"Have exactly these configured authorities stamp (may be repeated); built-in is the operator's own clock. Default: the built-in one and all of 'jurat tsa'."`
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
