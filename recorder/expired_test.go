package recorder_test

import (
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/installation"
	"jurat/internal/must"
	"jurat/recorder"
)

// TestExpiredRecords: a recorder begins, and records in a chain, whose older records have expired.
func TestExpiredRecords(t *testing.T) {
	then, folder := time.Now().AddDate(-1, 0, 0), filepath.Join(t.TempDir(), "data")
	past, _, err := installation.OpenOrCreate(t.Context(), installation.Config{Dir: folder, Now: func() time.Time { return then }})
	if err != nil {
		t.Fatal(err)
	}
	signers := must.Get(past.Keys.Signers(t.Context(), evidence.RoleRecorder, "gate"))(t)
	seal := func(i *installation.Installation, at time.Time, chain string) {
		t.Helper()
		calls := int64(0)
		p := must.Get((&observed.Event{Event: observed.Heartbeat, Since: evidence.FormatTime(at), Calls: &calls}).Payload("gate", evidence.FormatTime(at), chain))(t)
		draft := must.Get(evidence.NewDraft(p))(t)
		must.Get(i.Ledger.Seal(t.Context(), draft, signers))(t)
	}
	for n := range 20 {
		seal(past, then, []string{"recorder/gate", "recorded/mia/monday"}[n%2])
	}
	must.Do(t, past.Close())
	i := must.Get(installation.Open(t.Context(), installation.Config{Dir: folder}))(t)
	seal(i, time.Now(), "recorder/other") // the log's own time must be the present
	if done, err := i.Expirer.Expire(t.Context(), installation.ExpiryOrder{Before: time.Now().AddDate(0, -7, 0), Reason: "retention time over", By: "records office"}); err != nil || done.Records == 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	must.Do(t, i.Close())
	p := newProvider(t)
	r := open(t, recorder.Options{Folder: folder, Name: "gate", Agent: "mia", Chain: "monday"})
	if text, err := ask(t, &http.Client{Transport: r.Transport(nil)}, question(t, p.URL+"/v1/chat/completions", "one")); err != nil || text != answered {
		t.Errorf("%q, %v", text, err)
	}
	must.Do(t, r.Close(t.Context()))
	calls, _ := records(t, folder)
	if len(calls) != 1 || len(calls[0].Payload.Saw) != 1 {
		t.Errorf("%d calls", len(calls))
	}
}
