package ca

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ocsp"

	"jurat/evidence"
	"jurat/internal/keys"
	"jurat/verify/trust"
)

var testTime = time.Date(2026, 1, 31, 16, 15, 0, 0, time.UTC)

// A clock is set by tests.
type clock struct {
	mu sync.Mutex // guards at
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

var testPlan = Plan{Name: "Example agents", CRL: "http://ca.example/agents.crl", By: "A. Person", Reason: "a test"}

func newCA(t testing.TB, plan Plan) (*CA, *clock) {
	t.Helper()
	c := &clock{at: testTime}
	a, err := Create(t.Context(), Config{Dir: filepath.Join(t.TempDir(), "ca"), Now: c.now}, plan)
	if err != nil {
		t.Fatal(err)
	}
	return a, c
}

func testKey(t testing.TB) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func request(t testing.TB, key crypto.Signer, name string) *Request {
	t.Helper()
	der, err := MakeRequest(key, evidence.RoleAgent, name, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := ParseRequest(der)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func order(t testing.TB, name string) Order {
	t.Helper()
	return Order{Request: request(t, testKey(t), name), By: "A. Person", Reason: "asked for"}
}

func mustIssue(t testing.TB, a *CA, o Order) *Issued {
	t.Helper()
	one, err := a.Issue(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return one
}

// reopened is the CA as another process finds it.
func reopened(t testing.TB, a *CA) *CA {
	t.Helper()
	again, err := Open(t.Context(), a.config)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// TestNoAddress: a CA whose lists are at no address is made, and can be opened again.
func TestNoAddress(t *testing.T) {
	plan := testPlan
	plan.CRL = ""
	a, _ := newCA(t, plan)
	if one := mustIssue(t, reopened(t, a), order(t, "mia")); len(one.Certificate.CRLDistributionPoints) > 0 {
		t.Errorf("its lists are at %v", one.Certificate.CRLDistributionPoints)
	}
}

func TestRootAndLeaf(t *testing.T) {
	a, _ := newCA(t, testPlan)
	root := a.Certificate
	if !root.IsCA || !root.MaxPathLenZero || root.KeyUsage != x509.KeyUsageCertSign|x509.KeyUsageCRLSign || root.Subject.CommonName != "Example agents" ||
		!root.NotBefore.Equal(testTime.Add(-keys.Skew)) || !root.NotAfter.Equal(testTime.Add(-keys.Skew).AddDate(10, 0, 0).Add(-time.Second)) ||
		len(root.UnknownExtKeyUsage) != 1 || !root.UnknownExtKeyUsage[0].Equal(oidDocumentSigning) {
		t.Errorf("%+v", root)
	}
	for _, test := range []struct {
		name  string
		order Order
		to    time.Duration // after NotBefore, the last second included
		short bool
	}{
		{"default", order(t, "mia"), 30 * Day, false},
		{"days", Order{Life: 90 * Day}, 90 * Day, false},
		{"short", Order{Short: true}, 7 * Day, true},
		{"hours", Order{Short: true, Life: 3 * time.Hour}, 3 * time.Hour, true},
	} {
		o := order(t, "mia-"+test.name)
		o.Life, o.Short = test.order.Life, test.order.Short
		one := mustIssue(t, a, o)
		c := one.Certificate
		if !c.NotBefore.Equal(testTime.Add(-keys.Skew)) || c.NotAfter.Add(time.Second).Sub(c.NotBefore) != test.to {
			t.Errorf("%s: from %v to %v", test.name, c.NotBefore, c.NotAfter)
		}
		if has(c, oidNoRevAvail) != test.short || one.Short != test.short || (len(c.CRLDistributionPoints) > 0) == test.short {
			t.Errorf("%s: noRevAvail %v, %v", test.name, has(c, oidNoRevAvail), c.CRLDistributionPoints)
		}
		if err := trust.CheckCertificate(c, evidence.RoleAgent, "mia-"+test.name); err != nil {
			t.Error(err)
		}
		if c.KeyUsage != x509.KeyUsageDigitalSignature || c.IsCA || c.SerialNumber.BitLen() > 128 || c.SerialNumber.BitLen() < 64 {
			t.Errorf("%s: %+v", test.name, c)
		}
		if err := c.CheckSignatureFrom(root); err != nil {
			t.Error(err)
		}
		if found, err := reopened(t, a).Find(t.Context(), one.Serial); err != nil || !bytes.Equal(found.Certificate.Raw, c.Raw) || found.By != "A. Person" || found.Reason != "asked for" || !found.At.Equal(testTime) {
			t.Errorf("%s: another process finds %+v, %v", test.name, found, err)
		}
	}
	for _, wrong := range []Order{{Life: 399 * Day}, {Life: time.Minute}, {Life: -Day}, {Short: true, Life: 8 * Day}} {
		o := order(t, "wrong")
		o.Life, o.Short = wrong.Life, wrong.Short
		if _, err := a.Issue(t.Context(), o); err == nil || !strings.Contains(err.Error(), "a life of") {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
	for name, o := range map[string]Order{"by": {Reason: "r"}, "reason": {By: "b"}} {
		o.Request = request(t, testKey(t), "nobody")
		if _, err := a.Issue(t.Context(), o); err == nil {
			t.Errorf("issued without %s", name)
		}
	}
}

func everyKey(evidence.KeyID) bool { return true }

// TestNamesHaveOneKey: what another key has is refused while that certificate lives, and names that look the same always are.
func TestNamesHaveOneKey(t *testing.T) {
	a, now := newCA(t, testPlan)
	key := testKey(t)
	first := mustIssue(t, a, Order{Request: request(t, key, "mia"), By: "b", Reason: "r"})
	again := mustIssue(t, a, Order{Request: request(t, key, "mia"), By: "b", Reason: "r"})
	other := Order{Request: request(t, testKey(t), "mia"), By: "b", Reason: "r"}
	if _, err := a.Issue(t.Context(), other); !errors.Is(err, ErrTaken) {
		t.Errorf("another key got the name: %v", err)
	}
	for _, like := range []string{"MIA", "ｍｉａ", "mi a"} {
		o := order(t, like)
		o.Over = everyKey
		if _, err := a.Issue(t.Context(), o); !errors.Is(err, ErrTaken) {
			t.Errorf("%q: %v", like, err)
		}
	}
	var field *evidence.FieldError
	if _, err := a.Issue(t.Context(), order(t, "mi\u200ba2")); !errors.As(err, &field) || field.Field != "subjectAltName" {
		t.Errorf("a name with an invisible character: %v", err)
	}
	other.Over = everyKey
	mustIssue(t, a, other) // the log says that it is this key's now
	other.Over = nil
	if _, err := a.Revoke(t.Context(), []string{first.Serial, again.Serial}, "superseded", time.Time{}, "b", "r"); err != nil {
		t.Fatal(err)
	}
	mustIssue(t, a, other)
	now.add(31 * Day)
	mustIssue(t, a, Order{Request: request(t, testKey(t), "mia"), By: "b", Reason: "r"}) // all others have expired
}

func TestOnlyOwnersHaveCertificates(t *testing.T) {
	a, _ := newCA(t, testPlan)
	for _, role := range evidence.Roles() {
		der, err := MakeRequest(testKey(t), role, "mia", nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := ParseRequest(der)
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.Issue(t.Context(), Order{Request: r, By: "b", Reason: "r"})
		if keys.MayOwn(role) != (err == nil) {
			t.Errorf("%s: %v", role, err)
		}
	}
}

// TestNothingOutlivesTheCA: certificates end with the CA, and after its end it signs nothing.
func TestNothingOutlivesTheCA(t *testing.T) {
	plan := testPlan
	plan.Years = 1
	a, now := newCA(t, plan)
	early := mustIssue(t, a, order(t, "early"))
	now.add(364 * Day)
	if one := mustIssue(t, a, order(t, "mia")); !one.Certificate.NotAfter.Equal(a.Certificate.NotAfter) {
		t.Errorf("it ends at %v, the CA at %v", one.Certificate.NotAfter, a.Certificate.NotAfter)
	}
	now.add(2 * Day)
	_, issueErr := a.Issue(t.Context(), order(t, "late"))
	_, listErr := a.List(t.Context(), true, "b", "r")
	_, revokeErr := a.Revoke(t.Context(), []string{early.Serial}, "unspecified", time.Time{}, "b", "r")
	_, answerErr := a.Answer(t.Context(), early.Serial, "b", "r")
	for what, err := range map[string]error{"issue": issueErr, "list": listErr, "revoke": revokeErr, "answer": answerErr} {
		if !errors.Is(err, ErrExpired) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestRenewal(t *testing.T) {
	a, now := newCA(t, testPlan)
	key := testKey(t)
	first := mustIssue(t, a, Order{Request: request(t, key, "mia"), By: "b", Reason: "r"})
	short := mustIssue(t, a, Order{Request: request(t, testKey(t), "ben"), Short: true, By: "b", Reason: "r"})
	due := func() (names []string) {
		t.Helper()
		list, err := a.Due(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range list {
			names = append(names, one.Name)
		}
		return names
	}
	if got := due(); got != nil {
		t.Errorf("due at once: %v", got)
	}
	now.add(5 * Day) // two thirds of 7 are 4.7
	if got := due(); !slices.Equal(got, []string{"ben"}) {
		t.Errorf("due after five days: %v", got)
	}
	renewed, err := a.Renew(t.Context(), short.Serial, "b", "r")
	if err != nil {
		t.Fatal(err)
	}
	if renewed.KeyID != short.KeyID || renewed.Name != "ben" || !renewed.Short || renewed.Serial == short.Serial ||
		renewed.Certificate.NotAfter.Sub(renewed.Certificate.NotBefore) != short.Certificate.NotAfter.Sub(short.Certificate.NotBefore) {
		t.Errorf("%+v", renewed)
	}
	if got := due(); got != nil {
		t.Errorf("due after it was renewed: %v", got)
	}
	if _, err := a.Renew(t.Context(), short.Serial, "b", "r"); !errors.Is(err, ErrNotLatest) {
		t.Errorf("renewed twice: %v", err)
	}
	now.add(16 * Day)
	if got := due(); !slices.Equal(got, []string{"mia"}) { // ben's has expired
		t.Errorf("due after 21 days: %v", got)
	}
	if _, err := a.Renew(t.Context(), renewed.Serial, "b", "r"); !errors.Is(err, ErrEnded) {
		t.Errorf("an expired one: %v", err)
	}
	if _, err := a.Revoke(t.Context(), []string{first.Serial}, "keyCompromise", time.Time{}, "b", "r"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Renew(t.Context(), first.Serial, "b", "r"); !errors.Is(err, ErrRevoked) {
		t.Errorf("a revoked one: %v", err)
	}
	if got := due(); got != nil {
		t.Errorf("due after it was revoked: %v", got)
	}
	if _, err := a.Renew(t.Context(), "1", "b", "r"); !errors.Is(err, ErrUnknown) {
		t.Errorf("an unknown one: %v", err)
	}
}

func TestListsAndResponses(t *testing.T) {
	a, now := newCA(t, testPlan)
	empty, err := a.List(t.Context(), false, "b", "r")
	if err != nil || empty.Number.Cmp(big.NewInt(1)) != 0 {
		t.Fatalf("%+v, %v", empty, err)
	}
	mia, ben := mustIssue(t, a, order(t, "mia")), mustIssue(t, a, order(t, "ben"))
	good, err := a.Answer(t.Context(), mia.Serial, "b", "r")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := a.Answer(t.Context(), mia.Serial, "b", "r"); err != nil || !bytes.Equal(again, good) {
		t.Errorf("a fresh response was made anew: %v", err)
	}
	now.add(time.Hour)
	since := testTime.Add(10 * time.Minute)
	list, err := a.Revoke(t.Context(), []string{mia.Serial}, "keyCompromise", since, "b", "r")
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseRevocationList(list.DER)
	if err != nil || parsed.CheckSignatureFrom(a.Certificate) != nil || parsed.Number.Int64() != 2 || len(parsed.RevokedCertificateEntries) != 1 {
		t.Fatalf("%+v, %v", parsed, err)
	}
	entry := parsed.RevokedCertificateEntries[0]
	if entry.SerialNumber.Cmp(mia.Certificate.SerialNumber) != 0 || !entry.RevocationTime.Equal(testTime.Add(time.Hour)) || entry.ReasonCode != 1 || len(entry.Extensions) != 2 {
		t.Errorf("%+v", entry)
	}
	if !parsed.ThisUpdate.Equal(testTime.Add(time.Hour)) || !parsed.NextUpdate.Equal(parsed.ThisUpdate.Add(7*Day)) {
		t.Errorf("%v to %v", parsed.ThisUpdate, parsed.NextUpdate)
	}
	der, err := a.Answer(t.Context(), mia.Serial, "b", "r")
	if err != nil {
		t.Fatal(err)
	}
	response, err := ocsp.ParseResponseForCert(der, mia.Certificate, a.Certificate)
	if err != nil || response.Status != ocsp.Revoked || !response.RevokedAt.Equal(testTime.Add(time.Hour)) || response.RevocationReason != 1 || len(response.Extensions) != 1 {
		t.Errorf("%+v, %v", response, err)
	}
	if _, err := a.Revoke(t.Context(), []string{mia.Serial}, "keyCompromise", since, "b", "r"); !errors.Is(err, ErrRevoked) {
		t.Errorf("revoked twice: %v", err)
	}
	earlier, err := a.Revoke(t.Context(), []string{mia.Serial, ben.Serial}, "keyCompromise", testTime.Add(5*time.Minute), "b", "it was stolen before")
	if err != nil || earlier.Number.Int64() != 3 || !earlier.ThisUpdate.After(list.ThisUpdate) {
		t.Fatalf("%+v, %v", earlier, err)
	}
	if der2, err := a.Answer(t.Context(), mia.Serial, "b", "r"); err != nil || bytes.Equal(der, der2) {
		t.Errorf("the response still has the later time: %v", err)
	}
	cleo := mustIssue(t, a, order(t, "cleo"))
	for name, try := range map[string]func() error{
		"in the future": func() error {
			_, err := a.Revoke(t.Context(), []string{cleo.Serial}, "superseded", testTime.Add(2*time.Hour), "b", "r")
			return err
		},
		"an unknown one": func() error {
			_, err := a.Revoke(t.Context(), []string{"abc"}, "superseded", time.Time{}, "b", "r")
			return err
		},
		"no cause": func() error {
			_, err := a.Revoke(t.Context(), []string{cleo.Serial}, "certificateHold", time.Time{}, "b", "r")
			return err
		},
		"twice": func() error {
			_, err := a.Revoke(t.Context(), []string{cleo.Serial, cleo.Serial}, "superseded", time.Time{}, "b", "r")
			return err
		},
		"nothing":             func() error { _, err := a.Revoke(t.Context(), nil, "superseded", time.Time{}, "b", "r"); return err },
		"an unknown response": func() error { _, err := a.Answer(t.Context(), "abc", "b", "r"); return err },
	} {
		if err := try(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	same, err := a.List(t.Context(), false, "b", "r")
	if err != nil || !bytes.Equal(same.DER, earlier.DER) {
		t.Errorf("a fresh list was made anew: %v", err)
	}
	now.add(25 * time.Hour)
	daily, err := reopened(t, a).List(t.Context(), false, "b", "r")
	if err != nil || daily.Number.Int64() != 4 {
		t.Errorf("%+v, %v", daily, err)
	}
	now.add(400 * Day)
	late, err := a.List(t.Context(), false, "b", "r")
	if err != nil {
		t.Fatal(err)
	}
	if parsed, err := x509.ParseRevocationList(late.DER); err != nil || len(parsed.RevokedCertificateEntries) != 2 {
		t.Errorf("what has expired is gone from the list: %v", err)
	}
}

// TestReadersFollowTheLists: package trust reads the lists as they are meant.
func TestReadersFollowTheLists(t *testing.T) {
	a, now := newCA(t, testPlan)
	mia := mustIssue(t, a, order(t, "mia"))
	for range 3 {
		now.add(100 * time.Millisecond) // lists within one second must still have an order
		if _, err := a.List(t.Context(), true, "b", "r"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.Revoke(t.Context(), []string{mia.Serial}, "unspecified", time.Time{}, "b", "r"); err != nil {
		t.Fatal(err)
	}
	var last time.Time
	lists := 0
	if err := a.Acts(t.Context(), func(n int64, act *Act) error {
		if act.CRL == nil {
			return nil
		}
		lists++
		list, err := trust.ParseCRL(act.CRL)
		if err != nil || !list.ThisUpdate.After(last) {
			t.Errorf("act %d: %v after %v, %v", n, list.ThisUpdate, last, err)
		}
		last = list.ThisUpdate
		return nil
	}); err != nil || lists != 5 {
		t.Errorf("%d lists, %v", lists, err)
	}
}

// TestClockSetBack: an act never seems to be before the one before it, and a clock that is wrong by days stops the CA.
func TestClockSetBack(t *testing.T) {
	a, now := newCA(t, testPlan)
	now.add(-time.Hour)
	if one := mustIssue(t, a, order(t, "mia")); !one.At.Equal(testTime) {
		t.Errorf("issued at %v", one.At)
	}
	now.add(-24 * time.Hour)
	if _, err := a.Issue(t.Context(), order(t, "ben")); !errors.Is(err, ErrClock) {
		t.Error(err)
	}
}

// TestTwoProcesses: each of many CAs on one folder acts at once, and nothing is lost, doubled or given to two keys.
func TestTwoProcesses(t *testing.T) {
	a, _ := newCA(t, testPlan)
	const processes, each = 4, 8
	var wait sync.WaitGroup
	var taken [processes]int
	for p := range processes {
		orders := make([]Order, 0, 2*each)
		for n := range each {
			orders = append(orders, order(t, fmt.Sprintf("agent-%d-%d", p, n)), order(t, fmt.Sprintf("contested-%d", n)))
		}
		wait.Add(1)
		go func() {
			defer wait.Done()
			mine, err := Open(context.Background(), a.config)
			if err != nil {
				t.Error(err)
				return
			}
			for _, o := range orders {
				_, err := mine.Issue(context.Background(), o)
				if errors.Is(err, ErrTaken) {
					taken[p]++
				} else if err != nil {
					t.Error(err)
				}
			}
			if _, err := mine.List(context.Background(), true, "b", "r"); err != nil {
				t.Error(err)
			}
		}()
	}
	wait.Wait()
	list, err := reopened(t, a).Issued(t.Context())
	if err != nil || len(list) != processes*each+each {
		t.Errorf("%d certificates, %v", len(list), err)
	}
	names := map[string]bool{}
	for _, one := range list {
		if names[one.Name] {
			t.Errorf("%s was issued twice", one.Name)
		}
		names[one.Name] = true
	}
	if sum := taken[0] + taken[1] + taken[2] + taken[3]; sum != (processes-1)*each {
		t.Errorf("%d refusals, want %d", sum, (processes-1)*each)
	}
}

// TestInterrupted: a CA that was stopped at any write is as before it or after it.
func TestInterrupted(t *testing.T) {
	a, _ := newCA(t, testPlan)
	mia := mustIssue(t, a, order(t, "mia"))
	folder := filepath.Join(a.Where(), actsFolder)
	if err := os.WriteFile(filepath.Join(folder, ".new-123"), []byte(`{"at":"2026-`), 0o600); err != nil { // what atomicfile leaves behind
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Issue(ended, order(t, "ben")); !errors.Is(err, context.Canceled) {
		t.Errorf("it went on: %v", err)
	}
	again := reopened(t, a)
	if list, err := again.Issued(t.Context()); err != nil || len(list) != 1 || list[0].Serial != mia.Serial {
		t.Errorf("%v, %v", list, err)
	}
	mustIssue(t, again, order(t, "ben"))
	// A key without a first act is what an interrupted Create leaves.
	for name, change := range map[string]struct {
		plan func(*Plan)
		says string
	}{
		"goes on":     {func(*Plan) {}, ""},
		"another key": {func(p *Plan) { p.Algorithm = evidence.RS256 }, "earlier attempt"},
	} {
		dir := t.TempDir()
		key, err := os.ReadFile(filepath.Join(a.Where(), keyFile))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, keyFile), key, 0o600); err != nil {
			t.Fatal(err)
		}
		plan := testPlan
		change.plan(&plan)
		made, err := Create(t.Context(), Config{Dir: dir}, plan)
		switch {
		case change.says != "" && (err == nil || !strings.Contains(err.Error(), change.says)):
			t.Errorf("%s: %v", name, err)
		case change.says == "" && (err != nil || made.ID != a.ID):
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Create(t.Context(), a.config, testPlan); !errors.Is(err, ErrExists) {
		t.Errorf("made twice: %v", err)
	}
	if _, err := Open(t.Context(), Config{Dir: t.TempDir()}); !errors.Is(err, ErrNone) {
		t.Errorf("opened nothing: %v", err)
	}
}

// TestDamagedFolder: a CA whose folder does not say one thing signs nothing.
func TestDamagedFolder(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, dir string){
		"an act is no JSON": func(t *testing.T, dir string) { put(t, dir, actFile(3), `{"at":`) },
		"an act with a member more": func(t *testing.T, dir string) {
			replace(t, dir, actFile(3), `{`, `{"more":1,`)
		},
		"an act with nothing in it": func(t *testing.T, dir string) {
			put(t, dir, actFile(3), `{"at":"2026-01-31T16:15:00Z","by":"b","reason":"r"}`)
		},
		"settings later on": func(t *testing.T, dir string) { replace(t, dir, actFile(3), `}`, `,"settings":{}}`) },
		"a certificate twice": func(t *testing.T, dir string) {
			doc, err := os.ReadFile(filepath.Join(dir, actFile(2)))
			if err != nil {
				t.Fatal(err)
			}
			put(t, dir, actFile(3), string(doc))
		},
		"an unknown certificate revoked": func(t *testing.T, dir string) {
			put(t, dir, actFile(3), `{"at":"2026-01-31T16:15:00Z","by":"b","reason":"r","revoked":[{"serial":"1","cause":"superseded","from":"2026-01-31T16:15:00Z"}]}`)
		},
		"the key is another's": func(t *testing.T, dir string) {
			other, _ := newCA(t, testPlan)
			key, err := os.ReadFile(filepath.Join(other.Where(), keyFile))
			if err != nil {
				t.Fatal(err)
			}
			put(t, dir, keyFile, string(key))
		},
		"others can read the key": func(t *testing.T, dir string) {
			if err := os.Chmod(filepath.Join(dir, keyFile), 0o644); err != nil {
				t.Fatal(err)
			}
		},
		"an act is missing": func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, actFile(2))); err != nil {
				t.Fatal(err)
			}
		},
		"the first act is missing": func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, actFile(1))); err != nil {
				t.Fatal(err)
			}
			if _, err := Create(t.Context(), Config{Dir: dir}, testPlan); err == nil {
				t.Error("a CA is made beside the acts of another")
			}
		},
		"the key is gone": func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, keyFile)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		a, _ := newCA(t, testPlan)
		mustIssue(t, a, order(t, "mia"))
		mustIssue(t, a, order(t, "ben"))
		change(t, a.Where())
		again, err := Open(t.Context(), a.config)
		if err == nil {
			_, err = again.List(t.Context(), true, "b", "r")
		}
		if err == nil {
			t.Errorf("%s: it signs", name)
		}
	}
}

func put(t *testing.T, dir, file, content string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(file))
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func replace(t *testing.T, dir, file, old, new string) {
	t.Helper()
	doc, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(doc), old, new, 1)
	if old == "}" {
		changed = strings.TrimSuffix(string(doc), old) + new
	}
	put(t, dir, file, changed)
}

func TestPlans(t *testing.T) {
	for name, change := range map[string]func(*Plan){
		"no name":        func(p *Plan) { p.Name = "" },
		"a long name":    func(p *Plan) { p.Name = strings.Repeat("a", 65) },
		"a century":      func(p *Plan) { p.Years = 100 },
		"years before":   func(p *Plan) { p.Years = -1 },
		"no URL":         func(p *Plan) { p.CRL = "agents.crl" },
		"another scheme": func(p *Plan) { p.CRL = "ldap://ca.example/agents" },
		"Ed25519":        func(p *Plan) { p.Algorithm = evidence.Ed25519 },
		"ML-DSA-65":      func(p *Plan) { p.Algorithm = evidence.MLDSA65 },
		"nobody":         func(p *Plan) { p.By = "" },
	} {
		plan := testPlan
		change(&plan)
		dir := t.TempDir()
		if _, err := Create(t.Context(), Config{Dir: dir}, plan); err == nil {
			t.Errorf("%s: made", name)
		}
		if _, err := Open(t.Context(), Config{Dir: dir}); !errors.Is(err, ErrNone) {
			t.Errorf("%s: there is something: %v", name, err)
		}
	}
	plan := testPlan
	plan.Algorithm, plan.CRL = evidence.RS256, ""
	a, _ := newCA(t, plan)
	if one := mustIssue(t, reopened(t, a), order(t, "mia")); one.Certificate.CRLDistributionPoints != nil {
		t.Errorf("a certificate names the lists at %v", one.Certificate.CRLDistributionPoints)
	}
	if _, is := a.Certificate.PublicKey.(*rsa.PublicKey); !is {
		t.Errorf("a key of type %T", a.Certificate.PublicKey)
	}
	for _, key := range []crypto.Signer{testKey(t), rsaKey(t), ed25519Key(t)} {
		if _, err := a.Issue(t.Context(), Order{Request: request(t, key, fmt.Sprintf("key-%T", key)[5:8]), By: "b", Reason: "r"}); err != nil {
			t.Errorf("%T: %v", key, err)
		}
	}
}

func rsaKey(t testing.TB) crypto.Signer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func ed25519Key(t testing.TB) crypto.Signer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
