package installation_test

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/installation"
	"jurat/internal/stamping"
	"jurat/internal/witness"
	"jurat/jurattest"
	"jurat/timestamp"
	"jurat/verify"
)

// anchored has every outside authority stamp the checkpoint. It returns how many did and how many did not.
func anchored(t *testing.T, i *installation.Installation) (stamped, missing int) {
	t.Helper()
	all, err := i.Timekeeper.Anchor(t.Context())
	if err != nil {
		t.Fatal(err)
	}
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
	if err := installation.AddOutside(t.Context(), c, description, false); err != nil {
		t.Fatal(err)
	}
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
	if err != nil || len(proved.Log.CheckpointTimestamps) != 2 {
		t.Fatalf("%v, %+v", err, proved)
	}
	for n, a := range []*jurattest.TSA{one, two} {
		token, err := timestamp.Parse(proved.Log.CheckpointTimestamps[n].Token)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := token.Verify(sha256.Sum256([]byte(proved.Log.Checkpoint)), timestamp.Options{Roots: []*x509.Certificate{a.Root}}); err != nil {
			t.Errorf("stamp %d: %v", n, err)
		}
	}
	chain, err := i.Ledger.Chain(t.Context(), operator.CheckpointsChain)
	if err != nil || len(chain) != 2 || chain[1].Payload.PreviousRecord != chain[0].Digest {
		t.Errorf("the chain of stamped checkpoints: %v, %v", chain, err)
	}
	wantWhole(t, c)
}

// TestAnchorOfACosignedCheckpoint: only checkpoints with enough cosignatures are stamped, and others wait. So no proof uses a checkpoint
// that has a time and does not count.
func TestAnchorOfACosignedCheckpoint(t *testing.T) {
	c, authority := withOutside(t)
	i := open(t, c)
	first := seal(t, i)
	var all []*aWitness
	for _, name := range []string{"w1.example", "w2.example"} {
		w := witnessOf(t, i, name)
		if err := i.Witnesses.Add(t.Context(), w.Address, 0); err != nil {
			t.Fatal(err)
		}
		all = append(all, w)
	}
	trust, err := i.Trust(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	report := func(r *evidence.Record) *verify.Report {
		t.Helper()
		proved, err := i.Ledger.ProveOne(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		proved.Timestamps = nil // so that the checkpoint's alone shows the time
		return verify.Record(proved, verify.Options{Trust: trust, At: time.Now()})
	}

	all[1].down = true
	authority.Asked()
	anchors, err := i.Timekeeper.Anchor(t.Context())
	if err != nil || len(anchors) != 1 || anchors[0].Act != nil || !errors.Is(anchors[0].Reason, witness.ErrNotCosigned) || authority.Asked() != 0 {
		t.Errorf("cosigned by one of two: %+v, %v", anchors, err)
	}
	all[1].down = false
	if stamped, missing := anchored(t, i); stamped != 1 || missing != 0 {
		t.Errorf("cosigned: %d stamped and %d missing", stamped, missing)
	}
	r := report(first)
	if order, at := r.Of(verify.Order), r.Of(verify.Time); order.Status != verify.Proved || !strings.Contains(order.Reason, "w1.example, w2.example") || at.Status != verify.Proved {
		t.Errorf("%+v, %+v", order, at)
	}
	authority.Asked()
	if stamped, missing := anchored(t, i); stamped != 0 || missing != 0 || authority.Asked() != 0 {
		t.Errorf("again: %d stamped and %d missing", stamped, missing)
	}

	all[0].down = true
	second := seal(t, i)
	if stamped, missing := anchored(t, i); stamped != 0 || missing != 1 {
		t.Errorf("with a witness away: %d stamped and %d missing", stamped, missing)
	}
	if order := report(first).Of(verify.Order); order.Status != verify.Proved {
		t.Errorf("a stamped record has moved to another checkpoint: %+v", order)
	}
	all[0].down = false
	if stamped, missing := anchored(t, i); stamped != 1 || missing != 0 {
		t.Errorf("when the witness is back: %d stamped and %d missing", stamped, missing)
	}
	if r := report(second); r.Of(verify.Order).Status != verify.Proved || r.Of(verify.Time).Status != verify.Proved {
		t.Errorf("%+v, %+v", r.Of(verify.Order), r.Of(verify.Time))
	}
	wantWhole(t, c)
}

// TestAnchorOfABusyLog: records that are sealed after the witnesses answered, or meanwhile, do not keep an authority from stamping the
// cosigned checkpoint. Missing witnesses are a reason only for an authority that has stamped the last checkpoint that counts.
func TestAnchorOfABusyLog(t *testing.T) {
	c, _ := withOutside(t)
	description, two := outside(t, "two")
	if err := installation.AddOutside(t.Context(), c, description, false); err != nil {
		t.Fatal(err)
	}
	c.TSA = []string{stamping.BuiltIn} // records
	busy := open(t, c)
	c.TSA = nil
	i := open(t, c)
	first := seal(t, busy)
	w := witnessOf(t, i, "w1.example")
	if err := i.Witnesses.Add(t.Context(), w.Address, 1); err != nil {
		t.Fatal(err)
	}
	w.then = func() {
		if _, err := sealRequest(t, busy, "meanwhile"); err != nil {
			t.Error(err)
		}
	}
	for n := range 3 {
		if stamped, missing := anchored(t, i); stamped != 2 || missing != 0 {
			t.Errorf("run %d: %d stamped and %d missing", n, stamped, missing)
		}
	}
	proved, err := i.Ledger.ProveOne(t.Context(), first)
	if err != nil || len(proved.Log.CheckpointTimestamps) != 2 {
		t.Errorf("%v, %+v; want both stamps on one checkpoint", err, proved)
	}

	be(t, two, jurattest.Fails)
	if stamped, missing := anchored(t, i); stamped != 1 || missing != 1 {
		t.Errorf("when the second fails: %d stamped and %d missing", stamped, missing)
	}
	be(t, two, jurattest.Good)
	w.down = true
	anchors, err := i.Timekeeper.Anchor(t.Context())
	if err != nil || len(anchors) != 2 || anchors[0].Act != nil || !errors.Is(anchors[0].Reason, witness.ErrNotCosigned) ||
		anchors[1].Act == nil || anchors[1].Reason != nil {
		t.Errorf("the cosigned checkpoint, with the witness away: %+v, %v", anchors, err)
	}
	wantWhole(t, c)
}

func TestAnchorNeedsSomebodyOutside(t *testing.T) {
	c, _ := made(t)
	if _, err := open(t, c).Timekeeper.Anchor(t.Context()); !errors.Is(err, stamping.ErrNobodyOutside) {
		t.Errorf("without any authority: %v", err)
	}
	c, _ = withOutside(t)
	c.TSA = []string{stamping.BuiltIn}
	if _, err := open(t, c).Timekeeper.Anchor(t.Context()); !errors.Is(err, stamping.ErrNobodyOutside) {
		t.Errorf("by the built-in authority: %v", err)
	}
}

func TestAnchorGivenUp(t *testing.T) {
	c, authority := withOutside(t)
	i := open(t, c)
	seal(t, i)
	be(t, authority, jurattest.Hangs)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := i.Timekeeper.Anchor(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	wantWhole(t, c)
}
