package installation_test

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	lognote "golang.org/x/mod/sumdb/note"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/log/installation"
	"jurat/internal/log/stamping"
	"jurat/internal/log/witness"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/internal/test/rig"
	"jurat/timestamp"
	"jurat/verify"
)

// aWitness is a witness of the installation's log, over HTTP.
type aWitness struct {
	*witness.Witness
	witness.Address
	server *httptest.Server
	down   bool
	ahead  time.Duration // its clock
	then   func()        // called after each answer, if set
}

func witnessOf(t *testing.T, i *installation.Installation, name string) *aWitness {
	t.Helper()
	key := get(operator.GenerateCosigner(nil, name))
	trust := get(i.Trust(t.Context()))
	log, err := lognote.NewVerifier(trust.Logs[0])
	must.Do(t, err)
	w := new(aWitness)
	if w.Witness, err = witness.Open(t.Context(), witness.Config{File: t.TempDir() + "/w.db", Key: key, Logs: []lognote.Verifier{log},
		Now: func() time.Time { return time.Now().Add(w.ahead) }}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	handler := w.Handler(slog.New(slog.DiscardHandler))
	w.server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if w.down {
			out.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		handler.ServeHTTP(out, r)
		if w.then != nil {
			w.then()
		}
	}))
	t.Cleanup(w.server.Close)
	w.Address = witness.Address{URL: w.server.URL, Key: key.String()}
	return w
}

func house(t *testing.T) *installation.Installation {
	t.Helper()
	c, _ := made(t)
	return open(t, c)
}

// TestCosigned: a reader who demands two witnesses accepts what two of three have cosigned, while one is unreachable.
// What none has cosigned is not proved.
func TestCosigned(t *testing.T) {
	i := house(t)
	first := seal(t, i)
	if c, err := i.Witnesses.Cosign(t.Context()); c != nil || err != nil {
		t.Fatalf("without witnesses: %v, %v", c, err)
	}
	var all []*aWitness
	for _, name := range []string{"w1.example", "w2.example", "w3.example"} {
		w := witnessOf(t, i, name)
		must.Do(t, i.Witnesses.Add(t.Context(), w.Address, 0))
		all = append(all, w)
	}
	trust, err := i.Trust(t.Context())
	must.Need(t, err == nil && trust.Quorum == 2 && len(trust.Witnesses) == 3, "quorum %d of %d: %v", trust.Quorum, len(trust.Witnesses), err)
	order := func(r *evidence.Record) verify.Finding {
		t.Helper()
		proved := get(i.Ledger.ProveOne(t.Context(), r))
		return verify.Record(proved, verify.Options{Trust: trust, At: time.Now()}).Of(verify.Order)
	}
	f := order(first)
	must.Hold(t, f.Status == verify.NotProved && f.Rule == "witnesses", "before any witness was asked: %+v", f)
	all[2].down = true
	c, err := i.Witnesses.Cosign(t.Context())
	must.Need(t, err == nil && c.Cosigned() == 2 && c.Met() && errors.Is(c.Answers[2].Err, witness.ErrUnavailable) && !c.Answers[0].At.IsZero(),
		"%+v, %v", c, err)
	f = order(first)
	must.Hold(t, f.Status == verify.Proved && strings.Contains(f.Reason, "w1.example, w2.example"), "cosigned by two: %+v", f)
	all[2].down = false
	c, err = i.Witnesses.Cosign(t.Context())
	must.Hold(t, err == nil && c.Cosigned() == 3, "the third comes later: %+v, %v", c, err)
	published, err := i.Witnesses.Published(t.Context())
	must.Hold(t, err == nil && published == c.Checkpoint && strings.Count(published, "— ") == 4, "%q, %v", published, err)

	// All witnesses are unreachable: sealing goes on, and the last checkpoint that counts stays published.
	for _, w := range all {
		w.down = true
	}
	second := seal(t, i)
	c, err = i.Witnesses.Cosign(t.Context())
	must.Hold(t, err == nil && c.Cosigned() == 0 && !c.Met(), "%+v, %v", c, err)
	f = order(second)
	must.Hold(t, f.Status == verify.NotProved && f.Rule == "witnesses", "no witness has cosigned it: %+v", f)
	f = order(first)
	must.Hold(t, f.Status == verify.Proved, "the cosigned checkpoint has changed: %+v", f)
	must.Give(i.Witnesses.Published(t.Context()))(t, published)
	for _, w := range all {
		w.down = false
	}
	c, err = i.Witnesses.Cosign(t.Context())
	must.Hold(t, err == nil && c.Cosigned() == 3, "%+v, %v", c, err)
	f = order(second)
	must.Hold(t, f.Status == verify.Proved, "%+v", f)
	must.Do(t, i.Witnesses.Remove(t.Context(), "w3.example", 0))
	settings, err := witness.ReadSettings(t.Context(), i.Files)
	must.Hold(t, err == nil && len(settings.List) == 2 && settings.Quorum == 2, "%+v, %v", settings, err)
}

// TestWitnessAheadOfItsTime: a cosignature whose time readers would refuse is not accepted. The witness is asked again.
func TestWitnessAheadOfItsTime(t *testing.T) {
	i := house(t)
	r := seal(t, i)
	w := witnessOf(t, i, "w1.example")
	must.Do(t, i.Witnesses.Add(t.Context(), w.Address, 0))
	trust := get(i.Trust(t.Context()))
	for _, tt := range []struct {
		ahead  time.Duration
		status verify.Status
	}{{time.Hour, verify.NotProved}, {6 * time.Minute, verify.NotProved}, {4 * time.Minute, verify.Proved}} {
		w.ahead = tt.ahead
		c, err := i.Witnesses.Cosign(t.Context())
		must.Hold(t, err == nil && c.Met() == (tt.status == verify.Proved) && (c.Met() || strings.Contains(c.Answers[0].Err.Error(), "one of the two clocks is wrong")),
			"ahead by %v: %+v, %v", tt.ahead, c, err)
		proved := get(i.Ledger.ProveOne(t.Context(), r))
		f := verify.Record(proved, verify.Options{Trust: trust, At: time.Now()}).Of(verify.Order)
		must.Hold(t, f.Status == tt.status, "ahead by %v: %+v", tt.ahead, f)
	}
}

// TestWitnessesAreToldApart: a witness is refused if a trust file could not demand it, or if it could not be asked.
func TestWitnessesAreToldApart(t *testing.T) {
	i := house(t)
	w := witnessOf(t, i, "w1.example")
	must.Do(t, i.Witnesses.Add(t.Context(), w.Address, 0))
	trust := get(i.Trust(t.Context()))
	other := witnessOf(t, i, "w2.example").Address
	for name, bad := range map[string]witness.Address{
		"the same":          w.Address,
		"the same key":      {URL: other.URL, Key: w.Address.Key},
		"the same URL":      {URL: w.URL, Key: other.Key},
		"no key":            {URL: other.URL, Key: "w2.example"},
		"the log's key":     {URL: other.URL, Key: trust.Logs[0]},
		"no URL":            {URL: "w2.example", Key: other.Key},
		"not over the wire": {URL: "http://w2.example", Key: other.Key},
	} {
		must.Say(t, i.Witnesses.Add(t.Context(), bad, 0), "", name)
	}
	must.Say(t, i.Witnesses.Add(t.Context(), other, 3), "", "three of two")
	must.Say(t, i.Witnesses.Remove(t.Context(), "w7.example", 0), "", "Remove accepted a witness that is not there")
	must.Do(t, os.WriteFile(i.Dir+"/witnesses.json", []byte(`{"quorum":1}x`), 0o600))
	must.Refuse(t, "", "a trust file was written although the list of witnesses cannot be read")(i.Trust(t.Context()))
}

// TestWitnessOfAnotherHistory: if a witness has seen more of the log than there is, the error says so.
func TestWitnessOfAnotherHistory(t *testing.T) {
	i := house(t)
	w := witnessOf(t, i, "w1.example")
	must.Do(t, i.Witnesses.Add(t.Context(), w.Address, 0))
	backup := t.TempDir() + "/backup"
	must.Do(t, os.CopyFS(backup, os.DirFS(i.Dir)))
	for name := range rig.Tree(t, backup) { // this file system keeps no modes
		if info, err := os.Stat(filepath.Join(backup, name)); err == nil && info.Mode().IsRegular() {
			must.Do(t, os.Chmod(filepath.Join(backup, name), 0o600))
		}
	}
	seal(t, i)
	if c, err := i.Witnesses.Cosign(t.Context()); err != nil || c.Cosigned() != 1 {
		t.Fatalf("%+v, %v", c, err)
	}
	old := get(installation.Open(t.Context(), installation.Config{Dir: backup})) // with the checkpoint that was published then
	defer old.Close()
	c, err := old.Witnesses.Cosign(t.Context())
	var conflict *witness.ConflictError
	must.Need(t, err == nil && errors.As(c.Answers[0].Err, &conflict) && conflict.Size > c.Size, "a log that was set back: %+v, %v", c, err)
	for range 3 {
		seal(t, old)
	}
	c, err = old.Witnesses.Cosign(t.Context())
	must.Need(t, err == nil && errors.Is(c.Answers[0].Err, witness.ErrProof), "a log that continued with other records: %+v, %v", c, err)
}

// anchored has every outside authority stamp the checkpoint. It returns how many did and how many did not.
func anchored(t *testing.T, i *installation.Installation) (stamped, missing int) {
	t.Helper()
	all := get(i.Timekeeper.Anchor(t.Context()))
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
	must.Do(t, installation.AddOutside(t.Context(), c, description, false))
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
		stamped, missing := anchored(t, i)
		must.Hold(t, stamped == want && missing == 1, "%s: %d stamped and %d missing", mood, stamped, missing)
	}
	be(t, two, jurattest.Good)
	stamped, missing := anchored(t, i)
	must.Hold(t, stamped == 1 && missing == 0, "when it is good: %d stamped and %d missing", stamped, missing)
	size, err := i.Ledger.Size(t.Context())
	must.Hold(t, err == nil && size == 3, "%d records, %v; want one, and an act for each authority", size, err)
	one.Asked()
	two.Asked()
	stamped, missing = anchored(t, i)
	must.Hold(t, stamped == 0 && missing == 0 && one.Asked()+two.Asked() == 0, "again: %d stamped and %d missing", stamped, missing)

	proved, err := i.Ledger.ProveOne(t.Context(), r)
	must.Need(t, err == nil && len(proved.Log.Anchors) == 1 && len(proved.Log.Anchors[0].Timestamps) == 1 && len(proved.Log.Anchors[0].Timestamps[0]) == 2,
		"%v, %+v", err, proved)
	for n, a := range []*jurattest.TSA{one, two} {
		token := get(timestamp.Parse(proved.Log.Anchors[0].Timestamps[0][n]))
		_, err := token.Verify(sha256.Sum256([]byte(proved.Log.Anchors[0].Checkpoint)), timestamp.Options{Roots: []*x509.Certificate{a.Root}})
		must.Hold(t, err == nil, "stamp %d: %v", n, err)
	}
	chain, err := i.Ledger.Chain(t.Context(), operator.CheckpointsChain)
	must.Hold(t, err == nil && len(chain) == 2 && chain[1].Payload.PreviousRecord == chain[0].Digest,
		"the chain of stamped checkpoints: %v, %v", chain, err)
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
		must.Do(t, i.Witnesses.Add(t.Context(), w.Address, 0))
		all = append(all, w)
	}
	trust := get(i.Trust(t.Context()))
	wanted := func(r *evidence.Record) {
		t.Helper()
		proved := get(i.Ledger.ProveOne(t.Context(), r))
		proved.Timestamps = nil // so that the stamped checkpoint alone shows the time
		report := verify.Record(proved, verify.Options{Trust: trust, At: time.Now()})
		order, at := report.Of(verify.Order), report.Of(verify.Time)
		must.Hold(t, order.Status == verify.Proved && strings.Contains(order.Reason, "w1.example, w2.example") && at.Status == verify.Proved, "%+v, %+v", order, at)
	}
	all[1].down = true
	stamped, missing := anchored(t, i)
	must.Hold(t, stamped == 1 && missing == 0, "with a witness away: %d stamped and %d missing", stamped, missing)
	all[1].down = false
	get(i.Witnesses.Cosign(t.Context()))
	wanted(first)
	second := seal(t, i)
	get(i.Witnesses.Cosign(t.Context()))
	seal(t, i)
	all[0].down = true
	stamped, missing = anchored(t, i)
	must.Hold(t, stamped == 1 && missing == 0, "over more than what is cosigned: %d stamped and %d missing", stamped, missing)
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

func renew(t *testing.T, i *installation.Installation, config stamping.RenewConfig) stamping.Renewed {
	t.Helper()
	if config.Before.IsZero() {
		config.Before = time.Now().AddDate(1, 0, 0)
	}
	return get(i.Timekeeper.Renew(t.Context(), config))
}

// TestRenew: stamped checkpoints whose authority ends tomorrow are renewed, each once. Their records still prove their first times when that
// authority is no longer trusted.
func TestRenew(t *testing.T) {
	c, _ := withOutside(t)
	c.TSA = []string{stamping.BuiltIn} // records
	first := seal(t, open(t, c))
	c.TSA = nil
	i := open(t, c)
	must.Equal(t, renew(t, i, stamping.RenewConfig{}), stamping.Renewed{Authority: "outside"}, "without a stamped checkpoint")
	anchored(t, i)
	second := seal(t, i)
	anchored(t, i)
	r := renew(t, i, stamping.RenewConfig{TSA: stamping.BuiltIn, Before: time.Now().AddDate(-1, 0, 0)})
	must.Hold(t, r.Renewed == 0, "what ends later: %+v", r)
	trust := get(i.Trust(t.Context()))
	trust.Authorities[1].NotAfter = time.Now().Add(time.Minute)
	by := func(r *evidence.Record) string {
		t.Helper()
		proved := get(i.Ledger.ProveOne(t.Context(), r))
		proved.Timestamps = nil
		at, _ := verify.Record(proved, verify.Options{Trust: trust, At: time.Now().Add(time.Hour)}).TimeOf(r.Payload.RecordID)
		return at.Authority
	}
	must.Hold(t, by(first)+by(second) == "", "a lost authority is believed without a renewal")
	r = renew(t, i, stamping.RenewConfig{TSA: stamping.BuiltIn})
	must.Hold(t, r.Renewed == 2 && r.Foreign == 0 && r.Authority == stamping.BuiltIn, "%+v", r)
	for n, r := range []*evidence.Record{first, second} {
		must.Equal(t, by(r), trust.Authorities[1].Name, "record", n)
	}
	r = renew(t, i, stamping.RenewConfig{TSA: stamping.BuiltIn})
	must.Hold(t, r.Renewed == 0, "again: %+v", r)
	stamped, missing := anchored(t, i)
	must.Hold(t, stamped == 0 && missing == 0, "acts about renewals are stamped: %d and %d", stamped, missing)
	wantWhole(t, c)
}

// TestRenewRefuses: an authority that ends too soon, does not exist or gives invalid answers renews nothing.
func TestRenewRefuses(t *testing.T) {
	c, authority := withOutside(t)
	i := open(t, c)
	seal(t, i)
	anchored(t, i)
	year := time.Now().AddDate(1, 0, 0)
	wantError(t, "by an authority that ends tomorrow", stamping.ErrEndsTooEarly, errorOf(i.Timekeeper.Renew(t.Context(), stamping.RenewConfig{Before: year})))
	wantError(t, "by an authority that is not configured", stamping.ErrNotConfigured, errorOf(i.Timekeeper.Renew(t.Context(), stamping.RenewConfig{Before: year, TSA: "nobody"})))
	for _, mood := range []jurattest.Mood{jurattest.Garbage, jurattest.WrongNonce, jurattest.Refuses} {
		be(t, authority, mood)
		_, err := i.Timekeeper.Renew(t.Context(), stamping.RenewConfig{Before: year})
		must.Hold(t, err != nil && !errors.Is(err, stamping.ErrEndsTooEarly), "%s: %v", mood, err)
	}
	must.Give(i.Ledger.Size(t.Context()))(t, 2)
	get(i.Timekeeper.Remove(t.Context(), "outside", false))
	i = open(t, c)
	r := renew(t, i, stamping.RenewConfig{})
	must.Hold(t, r.Foreign == 1 && r.Renewed == 0, "of an authority that is no longer configured: %+v", r)
}
