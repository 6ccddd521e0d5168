package recording

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/must"
	"jurat/internal/relay"
)

// TestUpgradeOfAStranger: a call that asks to change the protocol passes in open mode without a record, but not for callers who do not say who they are, and
// its chain does not stop the counts of other calls from being sealed.
func TestUpgradeOfAStranger(t *testing.T) {
	log := &shelf{}
	d := newDesk(t, t.TempDir(), log, func(c *Config) { c.Mode, c.Agent = relay.Open, "" })
	if status, _, _ := d.call(question(false, user("hello")), "Connection", "Upgrade", "Upgrade", "websocket"); status != http.StatusUnauthorized || d.asked != 0 {
		t.Errorf("without a token: status %d, the provider was asked %d times", status, d.asked)
	}
	d.end()

	log = &shelf{}
	d = newDesk(t, t.TempDir(), log, func(c *Config) { c.Mode = relay.Open })
	if status, _, _ := d.call(question(false, user("hello")), "Connection", "Upgrade", "Upgrade", "websocket", "Jurat-Chain", strings.Repeat("long", 100)); status != http.StatusBadRequest || d.asked != 0 {
		t.Errorf("with a chain that no record can have: status %d, the provider was asked %d times", status, d.asked)
	}
	if status, _, err := d.call(question(false, user("hello")), "Connection", "Upgrade", "Upgrade", "websocket"); status != http.StatusOK {
		t.Errorf("status %d, %v", status, err)
	}
	d.end()
	if gaps := log.events(t, observed.Gap); len(gaps) != 1 || gaps[0].Missed[0].Calls != 1 {
		t.Errorf("%d gaps", len(gaps))
	}
}

// TestLongPathInACrash: a path or method that no record has is not in the journal either, whose lines are bounded: the next recorder must be able to read it.
func TestLongPathInACrash(t *testing.T) {
	folder, log := t.TempDir(), &shelf{}
	d := newDesk(t, folder, log, nil)
	for _, req := range []struct{ method, path string }{{"GET", "/openai/v1/" + strings.Repeat("x", 100_000)}, {strings.Repeat("X", 100_000), "/openai/v1/models"}} {
		r := must.Get(http.NewRequestWithContext(t.Context(), req.method, d.server.URL+req.path, nil))(t)
		answer := must.Get(http.DefaultClient.Do(r))(t)
		if _, err := io.Copy(io.Discard, answer.Body); err != nil { // the end of it comes when the call is in the log
			t.Error(err)
		}
		answer.Body.Close()
	}
	if _, damaged, err := readJournal(filepath.Join(d.recorder.own, journalFile)); err != nil || len(damaged) > 0 {
		t.Error(err)
	}
	d.crash()
	newDesk(t, folder, log, nil).end()
	calls := log.acts(evidence.ObservedCall)
	if len(calls) != 2 {
		t.Fatalf("%d records", len(calls))
	}
	if missing := strings.Join(append(calls[0].Observed.Missing, calls[1].Observed.Missing...), "; "); !strings.Contains(missing, "path: longer than") || !strings.Contains(missing, "method: it is none of HTTP") {
		t.Errorf("%s", missing)
	}
}
