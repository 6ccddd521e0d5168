package rules

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"jurat/evidence"
	"jurat/internal/must"
	"jurat/internal/subject"
	"jurat/jury"
)

// notebook is a recorder that keeps only the order.
type notebook struct {
	mu   sync.Mutex
	acts int
}

func (n *notebook) Record(context.Context, jury.Act) (evidence.Digest, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.acts++
	return evidence.DigestOf([]byte(fmt.Sprintf("act %d", n.acts))), nil
}

// trialOf conducts a trial before the offline panel, with the default settings.
func trialOf(material []byte) *jury.Deliberation {
	p := OfflinePanel()
	return &jury.Deliberation{
		Settings: jury.Settings{Seats: p.Seats, Judge: &p.JudgeSeat, Rubric: jury.DefaultRubric(), Collaborative: true,
			MaxRounds: 3, Threshold: 2, Method: jury.FinalJudge},
		Jurors: p.Jurors, Judge: p.Judge, Material: material, Submission: evidence.DigestOf([]byte("submission")), Recorder: &notebook{},
	}
}

func tryCase(t *testing.T, c *subject.Case) *jury.Result {
	t.Helper()
	return must.Get(trialOf(c.Material()).Run(t.Context()))(t)
}

// moduleRoot searches upwards from the test's folder.
func moduleRoot(t *testing.T) string {
	t.Helper()
	dir := must.Get(os.Getwd())(t)
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test's folder")
		}
		dir = filepath.Dir(dir)
	}
}

// everyFinding lists the findings of a result, with the jurors that have them.
func everyFinding(r *jury.Result) []heard {
	list := current(jury.Brief{Evaluations: r.Phase1Evaluations}, "")
	for _, round := range r.DiscussionRounds {
		list = append(list, current(jury.Brief{Rounds: []jury.Round{round}}, "")...)
	}
	return list
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text := must.Get(json.MarshalIndent(v, "", " "))(t)
	return string(text)
}
