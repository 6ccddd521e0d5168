package certlog_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/ca"
	"jurat/internal/certlog"
	"jurat/internal/installation"
	"jurat/internal/keys"
	"jurat/internal/ledger"
)

// A house is an installation and a CA.
type house struct {
	*installation.Installation
	ca *ca.CA
}

func open(t *testing.T) *house {
	t.Helper()
	dir := t.TempDir()
	i, _, err := installation.OpenOrCreate(t.Context(), installation.Config{Dir: filepath.Join(dir, "data")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
	a, err := ca.Create(t.Context(), ca.Config{Dir: filepath.Join(dir, "ca")}, ca.Plan{Name: "Agents", By: "A. Person", Reason: "a test"})
	if err != nil {
		t.Fatal(err)
	}
	return &house{i, a}
}

func key(t *testing.T) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// challenge is that of the log as it is.
func (h *house) challenge(t *testing.T) *ca.Challenge {
	t.Helper()
	signed, err := h.Ledger.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(signed, "\n\n")
	checkpoint, err := operator.ParseCheckpoint(text + "\n")
	if err != nil {
		t.Fatal(err)
	}
	c, err := ca.ChallengeOf(checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	return &c
}

func order(t *testing.T, by crypto.Signer, role evidence.Role, name string, challenge *ca.Challenge) certlog.Order {
	t.Helper()
	der, err := ca.MakeRequest(by, role, name, challenge)
	if err != nil {
		t.Fatal(err)
	}
	r, err := ca.ParseRequest(der)
	if err != nil {
		t.Fatal(err)
	}
	return certlog.Order{Order: ca.Order{Request: r, By: "A. Person", Reason: "asked for"}}
}

func (h *house) issue(t *testing.T, by crypto.Signer, name string) *ca.Issued {
	t.Helper()
	one, err := h.Certificates.Issue(t.Context(), h.ca, order(t, by, evidence.RoleAgent, name, h.challenge(t)))
	if err != nil {
		t.Fatal(err)
	}
	return one
}

func (h *house) offline(t *testing.T, by crypto.Signer, name string) *ca.Issued {
	t.Helper()
	one, err := h.ca.Issue(t.Context(), order(t, by, evidence.RoleAgent, name, nil).Order)
	if err != nil {
		t.Fatal(err)
	}
	return one
}

func (h *house) acts(t *testing.T) []*evidence.Record {
	t.Helper()
	chain, err := h.Ledger.Chain(t.Context(), operator.CertificatesChain)
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		t.Fatal(err)
	}
	return chain
}

func (h *house) history(t *testing.T) *keys.History {
	t.Helper()
	history, err := h.Ledger.Keys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return history
}

func (h *house) revoke(t *testing.T, one *ca.Issued) *ca.List {
	t.Helper()
	list, err := h.ca.Revoke(t.Context(), []string{one.Serial}, "keyCompromise", time.Time{}, "A. Person", "a theft")
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestPublish: what a CA did offline gets into the log in order, each once, however often and by how many processes it is published.
func TestPublish(t *testing.T) {
	h := open(t)
	mias := key(t)
	h.offline(t, mias, "mia")
	second := h.offline(t, mias, "mia")
	ben := h.offline(t, key(t), "ben")
	list := h.revoke(t, ben)
	response, err := h.ca.Answer(t.Context(), ben.Serial, "A. Person", "asked for")
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	var sealed [3]int
	for n := range sealed {
		wait.Add(1)
		go func() {
			defer wait.Done()
			done, err := h.Certificates.Publish(t.Context(), h.ca)
			if err != nil {
				t.Error(err)
			}
			sealed[n] = done.Acts
		}()
	}
	wait.Wait()
	const want = 8 // the CA, its first list, three certificates, a revocation with its list, a response
	if sum := sealed[0] + sealed[1] + sealed[2]; sum != want {
		t.Errorf("%v were sealed, want %d", sealed, want)
	}
	var kinds []string
	for n, r := range h.acts(t) {
		if r.Payload.ChainPosition != int64(n+1) || operator.Check(&r.Payload) != nil {
			t.Errorf("record %d: %+v", n, r.Payload)
		}
		kinds = append(kinds, string(r.Payload.ActionType))
	}
	if got := strings.Join(kinds, " "); got != "certificate_event revocation_evidence certificate_event certificate_event certificate_event certificate_event revocation_evidence revocation_evidence" {
		t.Error(got)
	}
	for _, der := range [][]byte{list.DER, response} {
		if kept, err := h.Certificates.Document(t.Context(), evidence.DigestOf(der)); err != nil || !slices.Equal(kept, der) {
			t.Errorf("the document is not kept: %v", err)
		}
	}
	if _, err := h.Certificates.Document(t.Context(), evidence.DigestOf([]byte("another"))); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if k := h.history(t).Key(second.KeyID); k == nil || k.Name != "mia" || len(k.Certificates) != 1 || !slices.Equal(k.Certificates[0], second.Certificate.Raw) {
		t.Errorf("%+v", k)
	}
	if k := h.history(t).Key(ben.KeyID); k != nil {
		t.Errorf("a revoked certificate registered %+v", k)
	}
	if done, err := h.Certificates.Publish(t.Context(), h.ca); err != nil || done.Acts != 0 || done.Keys != 0 {
		t.Errorf("published again: %+v, %v", done, err)
	}
}

// TestIssueAsksTheLog: the log's key events decide whose a name is, and its checkpoints how old a request is.
func TestIssueAsksTheLog(t *testing.T) {
	h := open(t)
	mias := key(t)
	first := h.issue(t, mias, "mia")
	if k := h.history(t).Key(first.KeyID); k == nil || k.Custody != operator.CustodyOwner {
		t.Fatalf("%+v", k)
	}
	h.issue(t, mias, "mia")
	if _, err := h.Keys.Signers(t.Context(), evidence.RoleAgent, "clerkless"); err != nil { // the operator makes this agent's key
		t.Fatal(err)
	}
	gone := key(t)
	h.issue(t, gone, "gone")
	goneID, err := evidence.KeyIDOf(gone.Public())
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Registrar.Revoke(t.Context(), goneID, time.Time{}, keys.Why{Reason: "a theft", By: "A. Person"}); err != nil {
		t.Fatal(err)
	}
	fresh := h.challenge(t)
	wrong, ahead := *fresh, *fresh
	wrong.Digest = evidence.DigestOf([]byte("another checkpoint"))
	ahead.Size += 1000
	var field *evidence.FieldError
	for name, test := range map[string]struct {
		order certlog.Order
		is    error
	}{
		"another's name":          {order(t, key(t), evidence.RoleAgent, "mia", fresh), certlog.ErrOther},
		"a name like another's":   {order(t, key(t), evidence.RoleAgent, "MIA", fresh), nil},
		"another's key":           {order(t, mias, evidence.RoleAgent, "ben", fresh), keys.ErrForeign},
		"the key in another role": {order(t, mias, evidence.RoleReviewer, "mia", fresh), keys.ErrForeign},
		"a key that has ended":    {order(t, gone, evidence.RoleAgent, "gone", fresh), keys.ErrEnded},
		"the operator's agent":    {order(t, key(t), evidence.RoleAgent, "clerkless", fresh), keys.ErrHeld},
		"no checkpoint":           {order(t, key(t), evidence.RoleAgent, "ben", nil), certlog.ErrStale},
		"another log's":           {order(t, key(t), evidence.RoleAgent, "ben", &wrong), certlog.ErrStale},
		"one to come":             {order(t, key(t), evidence.RoleAgent, "ben", &ahead), certlog.ErrStale},
	} {
		before := len(h.acts(t))
		if _, err := h.Certificates.Issue(t.Context(), h.ca, test.order); !errors.Is(err, test.is) && (test.is != nil || !errors.As(err, &field)) {
			t.Errorf("%s: %v, want %v", name, err, test.is)
		}
		if len(h.acts(t)) != before {
			t.Errorf("%s: something was sealed", name)
		}
	}
	if _, err := h.Certificates.Issue(t.Context(), h.ca, order(t, key(t), evidence.RoleClerk, "clerk", fresh)); !errors.As(err, &field) {
		t.Errorf("a clerk: %v", err)
	}
	any := order(t, key(t), evidence.RoleAgent, "ben", nil)
	any.AnyAge = true
	if _, err := h.Certificates.Issue(t.Context(), h.ca, any); err != nil {
		t.Error(err)
	}
}

// TestOldRequests: a request is fresh as long as its checkpoint is the latest, and for MaxAge after it was not.
func TestOldRequests(t *testing.T) {
	h := open(t)
	h.issue(t, key(t), "mia")
	old := h.challenge(t)
	later := *h.Certificates
	later.Now = func() time.Time { return time.Now().Add(certlog.MaxAge + time.Hour) }
	if _, err := later.Issue(t.Context(), h.ca, order(t, key(t), evidence.RoleAgent, "ben", old)); err != nil {
		t.Errorf("it is the latest checkpoint: %v", err) // and from now on it is not
	}
	if _, err := h.Certificates.Issue(t.Context(), h.ca, order(t, key(t), evidence.RoleAgent, "cleo", old)); err != nil {
		t.Errorf("it was the latest a moment ago: %v", err)
	}
	if _, err := later.Issue(t.Context(), h.ca, order(t, key(t), evidence.RoleAgent, "dora", old)); !errors.Is(err, certlog.ErrStale) {
		t.Errorf("it was the latest three days ago: %v", err)
	}
}

func everyKey(evidence.KeyID) bool { return true }

// TestOneKeyForAFreeName: of several keys that ask at once for a free name, one gets a certificate. Nor does a second one while
// the log does not yet know what the CA did.
func TestOneKeyForAFreeName(t *testing.T) {
	h := open(t)
	fresh := h.challenge(t)
	var orders []certlog.Order
	for range 6 {
		orders = append(orders, order(t, key(t), evidence.RoleAgent, "mia", fresh))
	}
	var wait sync.WaitGroup
	for _, o := range orders {
		other, err := ca.Open(t.Context(), ca.Config{Dir: h.ca.Where()}) // as of another process
		if err != nil {
			t.Fatal(err)
		}
		wait.Go(func() {
			if _, err := h.Certificates.Issue(t.Context(), other, o); err != nil && !errors.Is(err, ca.ErrTaken) && !errors.Is(err, certlog.ErrOther) {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	h.offline(t, key(t), "ben")
	if _, err := h.Certificates.Issue(t.Context(), h.ca, order(t, key(t), evidence.RoleAgent, "ben", h.challenge(t))); !errors.Is(err, ca.ErrTaken) {
		t.Errorf("another key has a certificate that is not published yet: %v", err)
	}
	all, err := h.ca.Issued(t.Context())
	if err != nil || len(all) != 2 {
		t.Errorf("%d certificates for two names, %v", len(all), err)
	}
}

// TestRefusedCertificatesAreSealed: what the log's rules do not let it register is sealed all the same, so that readers see it.
func TestRefusedCertificatesAreSealed(t *testing.T) {
	h := open(t)
	h.issue(t, key(t), "mia")
	if _, err := h.ca.Issue(t.Context(), func() ca.Order {
		o := order(t, key(t), evidence.RoleAgent, "mia", nil).Order
		o.Over = everyKey
		return o
	}()); err != nil {
		t.Fatal(err)
	}
	done, err := h.Certificates.Publish(t.Context(), h.ca)
	if err != nil || done.Acts != 1 || done.Keys != 0 || len(done.Refusals) != 1 || !errors.Is(done.Refusals[0], certlog.ErrOther) {
		t.Errorf("%+v, %v", done, err)
	}
}

// TestRegisterMany: the keys of several actors are registered together or not at all, and each once.
func TestRegisterMany(t *testing.T) {
	h := open(t)
	because := keys.Why{Reason: "r", By: "b"}
	of := func(name string) keys.Registration {
		one := h.offline(t, key(t), name)
		return keys.Registration{Role: evidence.RoleAgent, Name: name, Keys: []keys.OwnerKey{{Public: one.Certificate.RawSubjectPublicKeyInfo, Certificates: [][]byte{one.Certificate.Raw}}}, Why: because}
	}
	if _, err := h.Keys.Signers(t.Context(), evidence.RoleAgent, "held"); err != nil { // the operator makes this agent's key
		t.Fatal(err)
	}
	mia, ben, held := of("mia"), of("ben"), of("held")
	if err := h.Registrar.RegisterMany(t.Context(), []keys.Registration{mia, held}); !errors.Is(err, keys.ErrHeld) || h.history(t).Count() != 0 {
		t.Errorf("%d events, %v", h.history(t).Count(), err)
	}
	for range 2 {
		if err := h.Registrar.RegisterMany(t.Context(), []keys.Registration{mia, ben}); err != nil || h.history(t).Count() != 2 {
			t.Errorf("%d events, %v", h.history(t).Count(), err)
		}
	}
	events, err := h.Ledger.KeyEvents(t.Context())
	if err != nil || len(events) != 2 || events[0].Body.Name != "mia" || events[1].Body.Name != "ben" || events[1].Body.Reason != "r" || events[1].Body.By != "b" {
		t.Errorf("%+v, %v", events, err)
	}
}

// copyOf copies a CA's folder, as a backup does.
func copyOf(t *testing.T, a *ca.CA) ca.Config {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(dir, os.DirFS(a.Where())); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "ca.key"), 0o600); err != nil {
		t.Fatal(err)
	}
	return ca.Config{Dir: dir}
}

// TestRestoredCA: a CA that was set back to an old copy publishes nothing.
func TestRestoredCA(t *testing.T) {
	h := open(t)
	h.issue(t, key(t), "mia")
	old, err := ca.Open(t.Context(), copyOf(t, h.ca))
	if err != nil {
		t.Fatal(err)
	}
	h.issue(t, key(t), "ben")
	if _, err := h.Certificates.Publish(t.Context(), old); !errors.Is(err, certlog.ErrBehind) {
		t.Error(err)
	}
	if done, err := h.Certificates.Publish(t.Context(), h.ca); err != nil || done.Acts != 0 {
		t.Errorf("%+v, %v", done, err)
	}
}

// liar seals acts as the operator, whatever they say.
func (h *house) liar() ledger.Operator { return ledger.Operator{Ledger: h.Ledger, Keys: h.Keys} }

func (h *house) lie(t *testing.T, action evidence.ActionType, encoded []byte, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	p := evidence.Payload{ActionType: action, AgentID: ledger.OperatorName, Response: encoded}
	if _, err := h.liar().SealNext(t.Context(), operator.CertificatesChain, func([]*evidence.Record) ([]evidence.Payload, error) { return []evidence.Payload{p}, nil }); err != nil {
		t.Fatal(err)
	}
}

func (h *house) lieIssued(t *testing.T, der []byte) {
	t.Helper()
	encoded, err := operator.Encode(operator.CertificateEventBody{Event: operator.CertificateIssued, CA: h.ca.ID, Certificate: der, By: "b", Reason: "r"})
	h.lie(t, evidence.CertificateEvent, encoded, err)
}

func (h *house) lieListed(t *testing.T, number, from string) {
	t.Helper()
	encoded, err := operator.Encode(operator.RevocationEvidenceBody{Kind: operator.KindCRL, CA: h.ca.ID, Digest: evidence.DigestOf([]byte(number + from)), Number: number, ThisUpdate: from, NextUpdate: "2999-01-01T00:00:00Z", By: "b", Reason: "r"})
	h.lie(t, evidence.RevocationEvidence, encoded, err)
}

func (h *house) watch(t *testing.T, change func(*certlog.Watch)) []string {
	t.Helper()
	w := &certlog.Watch{Acts: h.acts(t), Keys: h.history(t), CAs: []*x509.Certificate{h.ca.Certificate}}
	if change != nil {
		change(w)
	}
	alarms, err := w.Alarms()
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, a := range alarms {
		if a.Reason == "" || a.Kind.Meaning() == "" || a.CA != h.ca.ID {
			t.Errorf("%+v", a)
		}
		kinds = append(kinds, string(a.Kind))
	}
	slices.Sort(kinds)
	return kinds
}

// TestCertificateMonitor: an honest CA and operator raise no alarm, and each lie raises its own.
func TestCertificateMonitor(t *testing.T) {
	for name, test := range map[string]struct {
		lie  func(t *testing.T, h *house) func(*certlog.Watch)
		want []string
	}{
		"honest": {func(t *testing.T, h *house) func(*certlog.Watch) { return nil }, nil},
		"honest, of a CA that the reader does not know": {func(t *testing.T, h *house) func(*certlog.Watch) {
			return func(w *certlog.Watch) { w.CAs = nil }
		}, nil},
		"honest, with its list and a certificate from elsewhere": {func(t *testing.T, h *house) func(*certlog.Watch) {
			list, err := h.ca.List(t.Context(), false, "b", "r")
			if err != nil {
				t.Fatal(err)
			}
			all, err := h.ca.Issued(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return func(w *certlog.Watch) {
				w.Lists, w.Certificates = []*x509.RevocationList{parsed(t, list)}, []*x509.Certificate{all[0].Certificate}
			}
		}, nil},
		"a certificate for a name with another key": {func(t *testing.T, h *house) func(*certlog.Watch) {
			o := order(t, key(t), evidence.RoleAgent, "mia", nil).Order
			o.Over = everyKey
			if _, err := h.ca.Issue(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			if _, err := h.Certificates.Publish(t.Context(), h.ca); err != nil {
				t.Fatal(err)
			}
			return nil
		}, []string{"unknown-key"}},
		"a certificate of a secret copy of the CA": {func(t *testing.T, h *house) func(*certlog.Watch) {
			secret, err := ca.Open(t.Context(), copyOf(t, h.ca))
			if err != nil {
				t.Fatal(err)
			}
			one, err := secret.Issue(t.Context(), order(t, key(t), evidence.RoleAgent, "nobody", nil).Order)
			if err != nil {
				t.Fatal(err)
			}
			return func(w *certlog.Watch) { w.Certificates = []*x509.Certificate{one.Certificate} }
		}, []string{"unknown-key", "unlogged"}},
		"such a certificate in a key event": {func(t *testing.T, h *house) func(*certlog.Watch) {
			secret, err := ca.Open(t.Context(), copyOf(t, h.ca))
			if err != nil {
				t.Fatal(err)
			}
			one, err := secret.Issue(t.Context(), order(t, key(t), evidence.RoleAgent, "nobody", nil).Order)
			if err != nil {
				t.Fatal(err)
			}
			owner := keys.OwnerKey{Public: one.Certificate.RawSubjectPublicKeyInfo, Certificates: [][]byte{one.Certificate.Raw}}
			if err := h.Registrar.Register(t.Context(), evidence.RoleAgent, "nobody", []keys.OwnerKey{owner}, time.Time{}, keys.Why{Reason: "r", By: "b"}); err != nil {
				t.Fatal(err)
			}
			return nil
		}, []string{"unlogged"}},
		"a list of a secret copy, with the number of another": {func(t *testing.T, h *house) func(*certlog.Watch) {
			secret, err := ca.Open(t.Context(), copyOf(t, h.ca))
			if err != nil {
				t.Fatal(err)
			}
			list, err := secret.List(t.Context(), true, "b", "r")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := h.ca.List(t.Context(), true, "b", "another reason"); err != nil {
				t.Fatal(err)
			}
			if _, err := h.Certificates.Publish(t.Context(), h.ca); err != nil {
				t.Fatal(err)
			}
			return func(w *certlog.Watch) { w.Lists = []*x509.RevocationList{parsed(t, list)} }
		}, []string{"two-lists", "unlogged"}},
		"two lists with one number in the log": {func(t *testing.T, h *house) func(*certlog.Watch) {
			h.lieListed(t, "1", "2999-01-01T00:00:00Z")
			return nil
		}, []string{"two-lists"}},
		"a number that goes back": {func(t *testing.T, h *house) func(*certlog.Watch) {
			h.lieListed(t, "900", "2001-01-01T00:00:00Z")
			return nil
		}, []string{"number-back"}},
		"a list without what was revoked": {func(t *testing.T, h *house) func(*certlog.Watch) {
			all, err := h.ca.Issued(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			list, err := h.ca.List(t.Context(), true, "b", "r")
			if err != nil {
				t.Fatal(err)
			}
			encoded, err := operator.Encode(operator.CertificateEventBody{Event: operator.CertificateRevoked, CA: h.ca.ID, Serial: all[0].Serial, From: "2026-01-01T00:00:00Z", Cause: "superseded", By: "b", Reason: "r"})
			if _, err := h.Certificates.Publish(t.Context(), h.ca); err != nil {
				t.Fatal(err)
			}
			h.lie(t, evidence.CertificateEvent, encoded, err)
			return func(w *certlog.Watch) { w.Lists = []*x509.RevocationList{parsed(t, list)} }
		}, []string{"not-revoked"}},
		"a certificate that another CA signed": {func(t *testing.T, h *house) func(*certlog.Watch) {
			other := open(t)
			h.lieIssued(t, other.offline(t, key(t), "mia").Certificate.Raw)
			return nil
		}, []string{"not-its-own"}},
		"no certificate": {func(t *testing.T, h *house) func(*certlog.Watch) {
			h.lieIssued(t, []byte{0x30, 0})
			return nil
		}, []string{"not-its-own"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t)
			h.issue(t, key(t), "mia")
			if got := h.watch(t, test.lie(t, h)); !slices.Equal(got, test.want) {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}

func parsed(t *testing.T, list *ca.List) *x509.RevocationList {
	t.Helper()
	read, err := x509.ParseRevocationList(list.DER)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// TestChallengeIsOfTheCheckpoint: what a requester computes from the signed note is what the log computes from its tree.
func TestChallengeIsOfTheCheckpoint(t *testing.T) {
	h := open(t)
	for n := range 3 {
		signed, err := h.Ledger.Checkpoint(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		opened, err := note.Open([]byte(signed), note.VerifierList())
		if unverified := (*note.UnverifiedNoteError)(nil); errors.As(err, &unverified) {
			opened = unverified.Note
		}
		if evidence.DigestOf([]byte(opened.Text)) != h.challenge(t).Digest {
			t.Error("the digest is not that of the note's text")
		}
		h.issue(t, key(t), "agent-"+string(rune('a'+n)))
	}
}
