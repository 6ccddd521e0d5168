package schedule_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jurat/api"
	"jurat/internal/must"
	"jurat/internal/schedule"
	"jurat/internal/trial"
	"jurat/jurattest"
)

// TestStoredList: a scheduler that stops keeps its list of trials, the next one begins with it and has the same, and a list that was lost
// is made again.
func TestStoredList(t *testing.T) {
	h, file := jurattest.New(t), filepath.Join(t.TempDir(), "trials.json")
	list := func(d *schedule.Scheduler) []trial.Summary {
		t.Helper()
		return must.Get(d.Trials(t.Context()))(t).List(nil)
	}
	var before []trial.Summary
	for i := range 3 {
		c := config(h, &bench{})
		c.Stored = file
		read := 0
		c.Reading = func(int64, int64) { read++ }
		d := open(t, c)
		if diff := cmp.Diff(before, list(d)); diff != "" {
			t.Errorf("start %d: before (-) and now (+):\n%s", i, diff)
		}
		if fromLog := read > 0; fromLog != (i == 2) {
			t.Errorf("start %d: the log was read: %t", i, fromLog)
		}
		stop := run(t, d)
		awaitState(t, d, submit(t, d), api.Over)
		before = list(d)
		stop()
		if _, err := os.Stat(file); err != nil {
			t.Error(err)
		}
		if i == 1 {
			must.Do(t, os.Remove(file))
		}
	}
}
