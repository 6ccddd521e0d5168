package reputation_test

import (
	"testing"
	"time"

	"jurat/internal/must"
	"jurat/jurattest"
	"jurat/jury"
	"jurat/reputation"
)

// FuzzFacts: facts that are read give one view, whatever is in them, and the same one twice.
func FuzzFacts(f *testing.F) {
	for seed := range uint64(8) {
		doc := must.Get(randomFacts(seed).Marshal())(f)
		f.Add(doc)
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		facts, err := reputation.ParseFacts(doc)
		if err != nil {
			return
		}
		v, err := facts.View()
		if err != nil {
			return
		}
		if _, err := v.Marshal(); err != nil {
			t.Skip() // a number that JSON cannot hold exactly: no verification finds one
		}
		for range v.Explain() {
		}
	})
}

// FuzzFile: no file makes the agent's lower bound higher than the honest files do, whatever bytes of it are changed.
func FuzzFile(f *testing.F) {
	w := newWorld(f)
	r := w.act(0)
	w.give(r)
	done := w.tryOnly(panel(jury.SafePass, "script"), r)
	w.decide(done, "noa", jury.SafePass)
	w.giveChain(done.ID)
	options := w.Options(f)
	options.At = jurattest.Start.Add(24 * time.Hour)
	for _, doc := range w.files {
		f.Add(doc)
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		g := must.Get(reputation.NewGatherer(reputation.Config{Agent: agent, Options: options}))(t)
		for range 2 {
			if _, err := g.File(doc); err != nil {
				return
			}
		}
		v := must.Get(g.View())(t)
		for _, c := range v.Classes {
			if c.Good.Units > 1 || c.Bad.Units > 0 {
				t.Errorf("%+v", c)
			}
		}
	})
}
