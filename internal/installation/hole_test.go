package installation_test

import (
	"context"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/installation"
	"jurat/internal/pgtest"
	"jurat/internal/schedule"
)

// TestHole: the network loses every packet of a machine, without an error. A caller that waits for the database without
// a deadline gets an error. When the network is back, the machine works.
func TestHole(t *testing.T) {
	t.Parallel()
	proxy, through := pgtest.NewProxy(t, pgtest.Database(t))
	key := wrappingKey(t)
	i := created(t, installation.Config{Dir: t.TempDir() + "/node", DB: through, WrappingKey: key})
	defer i.Close()
	defer proxy.GoOn() // before the machine is closed
	signers := must(i.Keys.Signers(t.Context(), evidence.RoleAgent, "courier"))
	sealed := must(i.Ledger.Seal(t.Context(), must(evidence.NewDraft(note())), signers))
	held, release, err := i.Locks().Lock(t.Context(), "trial-1")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	table := must(schedule.OpenTable(t.Context(), i.Database(), ""))
	defer table.Close()

	ctx := context.Background() // the callers have no deadline
	work := map[string]func() error{
		"reading": func() error { _, err := i.Ledger.Record(ctx, sealed.Payload.RecordID); return err },
		"sealing": func() error { _, err := i.Ledger.Seal(ctx, must(evidence.NewDraft(note())), signers); return err },
		"a key":   func() error { _, err := i.Keys.Signers(ctx, evidence.RoleAgent, "another"); return err },
		"the database itself": func() error {
			_, err := i.Database().Exec(ctx, `SELECT 1`)
			return err
		},
		"the queue": func() error { _, err := schedule.OpenTable(ctx, i.Database(), ""); return err },
		"a claim": func() error {
			_, release, err := i.Locks().Lock(ctx, "trial-2")
			if err == nil {
				release()
			}
			return err
		},
	}
	do := func() map[string]error {
		type outcome struct {
			name string
			err  error
		}
		outcomes, all := make(chan outcome), map[string]error{}
		for name, f := range work {
			go func() { outcomes <- outcome{name, f()} }()
		}
		timeout := time.After(3 * time.Minute)
		for len(all) < len(work) {
			select {
			case o := <-outcomes:
				all[o.name] = o.err
			case <-timeout:
				t.Fatalf("some callers still wait; the others returned %v", all)
			}
		}
		return all
	}
	proxy.Stop()
	for name, err := range do() {
		if err == nil {
			t.Errorf("%s: there was an answer", name)
		}
	}
	<-held.Done() // others may have claimed the trial meanwhile
	proxy.GoOn()
	for name, err := range do() {
		if err != nil {
			t.Errorf("%s, when the network is back: %v", name, err)
		}
	}
}
