package installation_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/installation"
	"jurat/internal/stamping"
	"jurat/jurattest"
	"jurat/verify"
	"jurat/verify/trust"
)

// outside is an authority that the operator does not run.
func outside(t *testing.T, name string) (stamping.Outside, *jurattest.TSA) {
	t.Helper()
	a := must(jurattest.StartTSA())
	t.Cleanup(a.Close)
	return stamping.Outside{Name: name, URL: a.URL, Roots: string(a.PEM())}, a
}

func be(t *testing.T, a *jurattest.TSA, mood jurattest.Mood) {
	t.Helper()
	succeeds(t, a.Be(mood))
}

func sealRequest(t *testing.T, i *installation.Installation, request string) (*evidence.Record, error) {
	t.Helper()
	draft := must(evidence.ParseDraft([]byte(`{"agent_id":"a","request_id":"` + request + `","timestamp":"2026-01-31T16:15:00Z","model":"m",
		"model_version":"v","prompt":"p","response":"r","parameters":{}}`)))
	signers := must(i.Keys.Signers(t.Context(), evidence.RoleAgent, "a"))
	return i.Ledger.Seal(t.Context(), draft, signers)
}

// TestOutsideAuthority: an outside authority stamps beside the operator's. A reader may trust it alone. If it does not
// answer, records wait.
func TestOutsideAuthority(t *testing.T) {
	c := installation.Config{Dir: filepath.Join(t.TempDir(), "data")}
	succeeds(t, installation.Create(t.Context(), c))
	description, authority := outside(t, "outside")
	succeeds(t, installation.AddOutside(t.Context(), c, description, false))
	if err := installation.AddOutside(t.Context(), c, description, false); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("added twice: %v", err)
	}
	i := must(installation.Open(t.Context(), c))
	defer i.Close()
	r := must(sealRequest(t, i, "r1"))
	if len(r.Timestamps) != 2 {
		t.Fatalf("%d time stamps, want the operator's and the outside one", len(r.Timestamps))
	}
	trusted := must(i.Trust(t.Context()))
	for n, want := range []trust.Clock{trust.OperatorClock, trust.Independent} {
		only := *trusted
		only.Authorities = trusted.Authorities[n : n+1]
		report := verify.Record(r, verify.Options{Trust: &only})
		if at, ok := report.TimeOf(r.Payload.RecordID); !ok || at.Clock != want {
			t.Errorf("trusting only %s: %+v", trusted.Authorities[n].Name, report.Of(verify.Time))
		}
	}
	be(t, authority, jurattest.Refuses)
	held, err := sealRequest(t, i, "r2")
	if err != nil || len(held.Timestamps) != 1 {
		t.Fatalf("without the outside authority: %v, %d time stamps", err, len(held.Timestamps))
	}
	if n, err := i.Timekeeper.Remove(t.Context(), "outside", false); !errors.Is(err, stamping.ErrAwaited) || n != 1 {
		t.Errorf("removed while a record waits: %d, %v", n, err)
	}
	if n, err := i.Timekeeper.Remove(t.Context(), "outside", true); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if _, err := i.Timekeeper.Remove(t.Context(), "outside", true); err == nil || !strings.Contains(err.Error(), "no authority is named") {
		t.Errorf("removed twice: %v", err)
	}
	if list, err := installation.ListOutside(t.Context(), c); len(list) != 0 || err != nil {
		t.Errorf("after removing: %v, %v", list, err)
	}
}

// TestRemoveLeavesNothingBare: when an authority is removed, the built-in one stamps the records that waited for it alone.
func TestRemoveLeavesNothingBare(t *testing.T) {
	c, authority := withOutside(t)
	be(t, authority, jurattest.Refuses)
	only := c
	only.TSA = []string{"outside"}
	i := open(t, only)
	bare := seal(t, i)
	if len(bare.Timestamps) != 0 {
		t.Fatalf("%d time stamps", len(bare.Timestamps))
	}
	seal(t, open(t, c))
	wantWhole(t, c)
	if n, err := i.Timekeeper.Remove(t.Context(), "outside", true); n != 1 || err != nil {
		t.Fatalf("gave up %d, %v; want the one record that has the built-in authority's stamp", n, err)
	}
	got, err := i.Ledger.Record(t.Context(), bare.Payload.RecordID)
	if err != nil || len(got.Timestamps) != 1 {
		t.Errorf("%d time stamps, %v", len(got.Timestamps), err)
	}
	wantWhole(t, c)
}

func TestOutsideAuthorityIsTriedFirst(t *testing.T) {
	c := installation.Config{Dir: filepath.Join(t.TempDir(), "data")}
	succeeds(t, installation.Create(t.Context(), c))
	good, authority := outside(t, "outside")
	be(t, authority, jurattest.Refuses)
	other, _ := outside(t, "other")
	for name, o := range map[string]stamping.Outside{
		"down":                    good,
		"another's root":          {Name: "x", URL: other.URL, Roots: good.Roots},
		"no root":                 {Name: "x", URL: other.URL},
		"no URL":                  {Name: "x", Roots: good.Roots},
		"a name that is a path":   {Name: "../x", URL: other.URL, Roots: other.Roots},
		"the built-in one's name": {Name: stamping.BuiltIn, URL: other.URL, Roots: other.Roots},
		"another policy":          {Name: "x", URL: other.URL, Roots: other.Roots, Policy: "1.2.3"},
		"no policy at all":        {Name: "x", URL: other.URL, Roots: other.Roots, Policy: "one"},
	} {
		if err := installation.AddOutside(t.Context(), c, o, false); err == nil {
			t.Errorf("%s: added", name)
		}
	}
	if list, err := installation.ListOutside(t.Context(), c); len(list) != 0 || err != nil {
		t.Errorf("listed: %v, %v", list, err)
	}
	if err := installation.AddOutside(t.Context(), c, good, true); err != nil {
		t.Errorf("untried: %v", err)
	}
}

// TestClockAheadOfAnAuthority: the operator's clock, which gives a new key its beginning, is a little ahead of an
// authority's clock. Records of the key are not refuted for that.
func TestClockAheadOfAnAuthority(t *testing.T) {
	c, _ := withOutside(t)
	c.Now = func() time.Time { return time.Now().Add(4 * time.Minute) }
	i := open(t, c)
	wantSound := func(what string, r *evidence.Record) {
		t.Helper()
		report := verify.Record(r, verify.Options{Trust: must(i.Trust(t.Context()))})
		for _, g := range []verify.Guarantee{verify.Authentication, verify.Time} {
			if f := report.Of(g); f.Status != verify.Proved {
				t.Errorf("%s: %s %s: %s", what, g, f.Status, f.Reason)
			}
		}
	}
	wantSound("the first record", must(sealRequest(t, i, "r")))
	succeeds(t, i.Registrar.Rotate(t.Context(), evidence.RoleAgent, "a", "", nil, because))
	wantSound("after a rotation", must(sealRequest(t, i, "r")))
	wantWhole(t, c)
}
