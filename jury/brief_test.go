package jury

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
)

type asked struct {
	who   string
	phase Phase
	round int
}

// TestBriefsAreRebuilt: for each answer and absence, BriefOf rebuilds from the records alone exactly what its seat was
// given.
func TestBriefsAreRebuilt(t *testing.T) {
	rebuilt := 0
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			d := randomTrial(rand.New(rand.NewPCG(seed, 11)))
			run(t, d)
			given := map[asked]Brief{}
			scripts := []*script{}
			for _, j := range d.Jurors {
				scripts = append(scripts, j.(*script))
			}
			if d.Judge != nil {
				scripts = append(scripts, d.Judge.(*script))
			}
			for _, s := range scripts {
				for _, b := range s.briefs {
					given[asked{b.Seat.JurorID, b.Phase, b.RoundNumber}] = b
				}
			}
			acts := d.book().read(t)
			for _, a := range acts {
				who := a.Actor
				if a.Type == evidence.Submission {
					who = ""
				}
				if absent, ok := a.Body.(*Absent); ok {
					who = absent.JurorID
				}
				b, err := BriefOf(material, acts, a.Digest)
				if (err == nil) != (who != "") {
					t.Fatalf("seed %d: %s of %q: %v", seed, a.Type, who, err)
				}
				if err != nil {
					continue
				}
				rebuilt++
				if diff := cmp.Diff(given[asked{who, b.Phase, b.RoundNumber}], b, cmp.Comparer(func(a, b evidence.Digest) bool { return a == b })); diff != "" {
					t.Fatalf("seed %d: %s of %q (-given +rebuilt):\n%s", seed, a.Type, who, diff)
				}
			}
		})
	}
	if rebuilt < 500 {
		t.Errorf("only %d briefs were compared", rebuilt)
	}
}

func TestBriefOfWhatIsNotThere(t *testing.T) {
	acts := sealedTrial(t)
	if _, err := BriefOf(material, acts, evidence.DigestOf([]byte("nothing"))); err == nil {
		t.Error("BriefOf returned a brief for an unknown act")
	}
	if _, err := BriefOf([]byte(`{"other":"evidence"}`), acts, acts[3].Digest); err == nil {
		t.Error("BriefOf returned a brief for other evidence")
	}
}
