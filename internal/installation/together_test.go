package installation_test

import (
	"sync"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/installation"
	"jurat/internal/trial"
	"jurat/jurattest"
	"jurat/jury"
)

// TestBatchTokens: records that are stored together share one token. Each of them verifies alone, and so does a trial.
// Acts that never wait for a stamp have a token of their own. Without the setting, the same log continues with a token
// for each record.
func TestBatchTokens(t *testing.T) {
	c := installation.Config{Dir: t.TempDir() + "/data", BatchTokens: true}
	i, _, err := installation.OpenOrCreate(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	alone := sealAs(t, i, "a", time.Now()) // a single caller is a batch of one
	var mu sync.Mutex
	var all sync.WaitGroup
	many := []*evidence.Record{alone}
	for range 60 {
		all.Go(func() {
			r := sealAs(t, i, "a", time.Now())
			mu.Lock()
			defer mu.Unlock()
			many = append(many, r)
		})
	}
	all.Wait()
	jurors, judge := jurattest.Panel()
	held, err := trial.Run(t.Context(), trial.Config{Ledger: i.Ledger, Keys: i.Keys, Settings: jurattest.Settings(jury.FinalJudge),
		Jurors: jurors, Judge: judge}, jurattest.Case(t))
	if err != nil {
		t.Fatal(err)
	}
	proved(t, i, held.Records...)
	for _, r := range many {
		if len(r.Timestamps) != 1 || r.Timestamps[0].Kind != evidence.RFC4998 {
			t.Errorf("%s has %d time stamps, the first of kind %s", r.Payload.RecordID, len(r.Timestamps), r.Timestamps[0].Kind)
		}
		proved(t, i, r)
		stored, err := i.Ledger.Record(t.Context(), r.Payload.RecordID)
		if err != nil || len(stored.Timestamps) != 1 || string(stored.Timestamps[0].Token) != string(r.Timestamps[0].Token) {
			t.Errorf("in the log %s has other time stamps: %v", r.Payload.RecordID, err)
		}
	}
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	c.BatchTokens = false
	if i, err = installation.Open(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	single := sealAs(t, i, "a", time.Now())
	if single.Timestamps[0].Kind != evidence.RFC3161 {
		t.Errorf("without the setting, the stamp is of kind %s", single.Timestamps[0].Kind)
	}
	proved(t, i, single, many[5], many[50])
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	if damages, size, err := installation.Fsck(t.Context(), c, nil); err != nil || len(damages) > 0 || size != int64(62+len(held.Records)) {
		t.Errorf("%d records: %v, %v", size, damages, err)
	}
}
