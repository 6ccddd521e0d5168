package trial_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"jurat/evidence"
	"jurat/internal/juror/rules"
	"jurat/internal/ledger"
	"jurat/internal/must"
	"jurat/internal/subject"
	"jurat/internal/trial"
	"jurat/jurattest"
	"jurat/jury"
	"jurat/verify"
)

var update = flag.Bool("update", false, "write the golden case files anew")

// late is a juror who waits before it answers, so that answers arrive in the same order every time.
type late struct {
	jury.Juror
	after time.Duration
}

func (l late) Answer(ctx context.Context, b jury.Brief) (jury.Answer, error) {
	time.Sleep(l.after)
	return l.Juror.Answer(ctx, b)
}

// offline is the offline panel as the command seats it. It answers in the order of the seats.
func offline(h *jurattest.House) trial.Config {
	panel := rules.OfflinePanel()
	for i := range panel.Jurors {
		panel.Jurors[i] = late{panel.Jurors[i], time.Duration(i) * time.Second}
	}
	return trial.Config{Ledger: h.Ledger, Keys: h.Keys, Now: h.Now, Random: h.Random, Jurors: panel.Jurors, Judge: panel.Judge,
		Settings: jury.Settings{Seats: panel.Seats, Judge: &panel.JudgeSeat, Rubric: jury.DefaultRubric(), Collaborative: true,
			MaxRounds: 3, Threshold: 2, Method: jury.FinalJudge}}
}

// goldenCase tries an example with known keys, clock, ids and authority, and returns its case file.
func goldenCase(t *testing.T, example string) []byte {
	t.Helper()
	on := must.Get(subject.Load(filepath.Join("..", "..", "examples", example)))(t)
	var file []byte
	synctest.Test(t, func(t *testing.T) {
		h := jurattest.New(t)
		done := must.Get(trial.Run(t.Context(), offline(h), on))(t)
		b := h.Bundle(t, done.Records...)
		if r := verify.Bundle(b, h.Options(t)); r.Outcome != verify.Proved {
			t.Errorf("%s: %+v", r.Outcome, r.Details)
		}
		file = must.Get(b.Marshal())(t)
	})
	return file
}

// TestGoldenCaseFiles: with known keys, clock, ids and authority, a case file has the same bytes on every machine. The
// golden files change only on purpose: go test ./internal/trial -run Golden -update.
func TestGoldenCaseFiles(t *testing.T) {
	for _, example := range []string{"kitchen-return", "invoice-inbox", "pharmacy-refill"} {
		golden := filepath.Join("testdata", example+".jurat")
		got := goldenCase(t, example)
		if *update {
			must.Do(t, os.WriteFile(golden, got, 0o644))
		}
		want := must.Get(os.ReadFile(golden))(t)
		if !bytes.Equal(got, want) {
			t.Errorf("%s: the case file differs from %s; if that is on purpose, run with -update", example, golden)
		}
		if again := goldenCase(t, example); !bytes.Equal(again, got) {
			t.Errorf("%s: a second trial gave another case file", example)
		}
	}
}

var _ ledger.Keys = (*jurattest.Keys)(nil)

// TestEverybodySignsWithKeysOfTheirOwn: each actor has one key, and signs each of its acts with it.
func TestEverybodySignsWithKeysOfTheirOwn(t *testing.T) {
	h := jurattest.New(t)
	keys := map[string]evidence.KeyID{}
	for _, r := range h.Try(t, jury.FinalJudge).Records {
		who := string(r.Payload.Role()) + " " + r.Payload.Actor()
		id := r.Payload.Signers[0].KeyID
		if known, ok := keys[who]; ok && known != id {
			t.Errorf("%s signed with two keys", who)
		}
		keys[who] = id
	}
	if len(keys) != 6 { // the submitter, the clerk, three jurors and the judge
		t.Errorf("%d actors signed: %v", len(keys), keys)
	}
	seen := map[evidence.KeyID]string{}
	for who, id := range keys {
		if other, ok := seen[id]; ok {
			t.Errorf("%s and %s signed with the same key", who, other)
		}
		seen[id] = who
	}
}
