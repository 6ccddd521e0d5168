package installation_test

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/installation"
	"jurat/internal/stamping"
	"jurat/jurattest"
	"jurat/timestamp"
	"jurat/verify"
)

// anchored has every outside authority stamp the checkpoint. It returns how many did and how many did not.
func anchored(t *testing.T, i *installation.Installation) (stamped, missing int) {
	t.Helper()
	all := must(i.Timekeeper.Anchor(t.Context()))
	for _, a := range all {
		switch {
		case a.Reason != nil:
			missing++
		case a.Act != nil:
			stamped++
		}
	}
	return stamped, missing
}

// TestAnchor: each authority stamps the log once. Only an authority without a good token is asked again.
func TestAnchor(t *testing.T) {
	c, one := withOutside(t)
	description, two := outside(t, "two")
	succeeds(t, installation.AddOutside(t.Context(), c, description, false))
	c.TSA = []string{stamping.BuiltIn} // records
	r := seal(t, open(t, c))
	c.TSA = nil
	i := open(t, c)
	for _, mood := range []jurattest.Mood{jurattest.Fails, jurattest.Garbage, jurattest.Another, jurattest.WrongNonce, jurattest.Expired} {
		be(t, two, mood)
		want := 0
		if mood == jurattest.Fails { // the first
			want = 1
		}
		if stamped, missing := anchored(t, i); stamped != want || missing != 1 {
			t.Errorf("%s: %d stamped and %d missing", mood, stamped, missing)
		}
	}
	be(t, two, jurattest.Good)
	if stamped, missing := anchored(t, i); stamped != 1 || missing != 0 {
		t.Errorf("when it is good: %d stamped and %d missing", stamped, missing)
	}
	size, err := i.Ledger.Size(t.Context())
	if err != nil || size != 3 {
		t.Errorf("%d records, %v; want one, and an act for each authority", size, err)
	}
	one.Asked()
	two.Asked()
	if stamped, missing := anchored(t, i); stamped != 0 || missing != 0 || one.Asked()+two.Asked() != 0 {
		t.Errorf("again: %d stamped and %d missing", stamped, missing)
	}

	proved, err := i.Ledger.ProveOne(t.Context(), r)
	if err != nil || len(proved.Log.Anchors) != 1 || len(proved.Log.Anchors[0].Timestamps) != 1 || len(proved.Log.Anchors[0].Timestamps[0]) != 2 {
		t.Fatalf("%v, %+v", err, proved)
	}
	for n, a := range []*jurattest.TSA{one, two} {
		token := must(timestamp.Parse(proved.Log.Anchors[0].Timestamps[0][n]))
		if _, err := token.Verify(sha256.Sum256([]byte(proved.Log.Anchors[0].Checkpoint)), timestamp.Options{Roots: []*x509.Certificate{a.Root}}); err != nil {
			t.Errorf("stamp %d: %v", n, err)
		}
	}
	chain, err := i.Ledger.Chain(t.Context(), operator.CheckpointsChain)
	if err != nil || len(chain) != 2 || chain[1].Payload.PreviousRecord != chain[0].Digest {
		t.Errorf("the chain of stamped checkpoints: %v, %v", chain, err)
	}
	wantWhole(t, c)
}

// TestAnchorBesideWitnesses: a checkpoint is stamped whoever has cosigned it, and a record has its time by that and its place by the last one that
// counts.
func TestAnchorBesideWitnesses(t *testing.T) {
	c, _ := withOutside(t)
	i := open(t, c)
	first := seal(t, i)
	var all []*aWitness
	for _, name := range []string{"w1.example", "w2.example"} {
		w := witnessOf(t, i, name)
		succeeds(t, i.Witnesses.Add(t.Context(), w.Address, 0))
		all = append(all, w)
	}
	trust := must(i.Trust(t.Context()))
	wanted := func(r *evidence.Record) {
		t.Helper()
		proved := must(i.Ledger.ProveOne(t.Context(), r))
		proved.Timestamps = nil // so that the stamped checkpoint alone shows the time
		report := verify.Record(proved, verify.Options{Trust: trust, At: time.Now()})
		if order, at := report.Of(verify.Order), report.Of(verify.Time); order.Status != verify.Proved || !strings.Contains(order.Reason, "w1.example, w2.example") || at.Status != verify.Proved {
			t.Errorf("%+v, %+v", order, at)
		}
	}
	all[1].down = true
	if stamped, missing := anchored(t, i); stamped != 1 || missing != 0 {
		t.Errorf("with a witness away: %d stamped and %d missing", stamped, missing)
	}
	all[1].down = false
	must(i.Witnesses.Cosign(t.Context()))
	wanted(first)
	second := seal(t, i)
	must(i.Witnesses.Cosign(t.Context()))
	seal(t, i)
	all[0].down = true
	if stamped, missing := anchored(t, i); stamped != 1 || missing != 0 {
		t.Errorf("over more than what is cosigned: %d stamped and %d missing", stamped, missing)
	}
	wanted(first)
	wanted(second)
	wantWhole(t, c)
}

func TestAnchorNeedsSomebodyOutside(t *testing.T) {
	c, _ := made(t)
	wantError(t, "without any authority", stamping.ErrNobodyOutside, errorOf(open(t, c).Timekeeper.Anchor(t.Context())))
	c, _ = withOutside(t)
	c.TSA = []string{stamping.BuiltIn}
	wantError(t, "by the built-in authority", stamping.ErrNobodyOutside, errorOf(open(t, c).Timekeeper.Anchor(t.Context())))
}

func TestAnchorGivenUp(t *testing.T) {
	c, authority := withOutside(t)
	i := open(t, c)
	seal(t, i)
	be(t, authority, jurattest.Hangs)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantError(t, "given up", context.Canceled, errorOf(i.Timekeeper.Anchor(ctx)))
	wantWhole(t, c)
}
