package jurattest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"jurat/timestamp"
)

// A Mood says how a TSA answers.
type Mood string

// Moods of a TSA. All but the first give no good token.
const (
	Good       Mood = "good"
	Refuses    Mood = "refuses" // status 404: final, so the client does not try again
	Fails      Mood = "fails"   // status 500
	Garbage    Mood = "garbage"
	Another    Mood = "another" // a token over other data
	WrongNonce Mood = "nonce"
	Expired    Mood = "expired" // a token of a time at which its certificate had expired
	Hangs      Mood = "hangs"
)

// Moods lists every mood.
func Moods() []Mood {
	return []Mood{Good, Refuses, Fails, Garbage, Another, WrongNonce, Expired, Hangs}
}

// A TSA is an independent time-stamping authority over HTTP on the loopback interface. It uses the machine's clock.
// Unlike a House, it proves time to readers who trust its root.
type TSA struct {
	URL  string
	Root *x509.Certificate

	Certificate *x509.Certificate // issued under Root

	operator      pkix.Name
	server        *httptest.Server
	good, expired *timestamp.Authority

	mu    sync.Mutex // held while what follows is read or written
	mood  Mood
	asked int
}

// StartTSA starts an authority that gives good tokens, with new keys. Its certificate is valid for some hours around
// now. It passes on the errors of making keys and certificates.
func StartTSA() (*TSA, error) { return StartTSAOf(pkix.Name{}) }

// StartTSAOf is StartTSA for an authority whose certificate names its operator. The zero Name stands for the usual
// name. Its errors are those of StartTSA.
func StartTSAOf(operator pkix.Name) (*TSA, error) {
	a := &TSA{mood: Good, operator: operator}
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	from := time.Now().UTC().Truncate(time.Second).Add(-2 * time.Hour)
	validity := timestamp.CertificateConfig{Serial: big.NewInt(7), NotBefore: from, NotAfter: from.Add(24 * time.Hour), Key: rootKey}
	if a.Root, err = timestamp.NewRoot(validity); err != nil {
		return nil, err
	}
	if a.good, err = a.authority(rootKey, validity.NotAfter, time.Now); err != nil {
		return nil, err
	}
	// An authority stamps only within its certificate's validity. An expired one therefore continues with a wrong
	// clock.
	past := from.Add(time.Hour)
	if a.expired, err = a.authority(rootKey, past, func() time.Time { return past }); err != nil {
		return nil, err
	}
	a.Certificate = a.good.Certificates()[0]
	a.server = httptest.NewServer(http.HandlerFunc(a.serve))
	a.URL = a.server.URL
	return a, nil
}

func (a *TSA) authority(rootKey *ecdsa.PrivateKey, until time.Time, now func() time.Time) (*timestamp.Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	leaf, err := timestamp.NewCertificate(timestamp.CertificateConfig{Serial: big.NewInt(8), NotBefore: a.Root.NotBefore,
		NotAfter: until, Key: key}, a.Root, rootKey)
	if err != nil {
		return nil, err
	}
	if len(a.operator.ToRDNSequence()) > 0 {
		if leaf, err = renamed(leaf, a.operator, a.Root, rootKey); err != nil {
			return nil, err
		}
	}
	return timestamp.NewAuthority(timestamp.AuthorityConfig{Key: key, Certificate: leaf, Chain: []*x509.Certificate{a.Root}, Now: now})
}

// renamed is a certificate with another subject.
func renamed(c *x509.Certificate, subject pkix.Name, by *x509.Certificate, key *ecdsa.PrivateKey) (*x509.Certificate, error) {
	template := *c
	template.Subject, template.RawSubject, template.ExtKeyUsage = subject, nil, nil
	for _, extension := range c.Extensions {
		if extension.Critical && extension.Id.String() == "2.5.29.37" {
			template.ExtraExtensions = []pkix.Extension{extension}
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, by, c.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// Close ends the server. It ends waiting requests, too.
func (a *TSA) Close() {
	a.server.CloseClientConnections()
	a.server.Close()
}

// PEM returns the root certificate in PEM.
func (a *TSA) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Root.Raw})
}

// Be sets the authority's mood. It returns an error for an unknown mood.
func (a *TSA) Be(m Mood) error {
	if !slices.Contains(Moods(), m) {
		return fmt.Errorf("unknown mood %q: expected one of %v", m, Moods())
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mood = m
	return nil
}

// Asked returns how many requests came since the last call of Asked.
func (a *TSA) Asked() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.asked
	a.asked = 0
	return n
}

func (a *TSA) serve(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.asked++
	mood := a.mood
	a.mu.Unlock()
	query, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	switch mood {
	case Refuses:
		w.WriteHeader(http.StatusNotFound)
		return
	case Fails:
		w.WriteHeader(http.StatusInternalServerError)
		return
	case Hangs:
		<-r.Context().Done()
		return
	}
	reply, err := a.answer(mood, query)
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/timestamp-reply")
	w.Write(reply) // the client may have gone
}

func (a *TSA) answer(mood Mood, query []byte) ([]byte, error) {
	request, err := ParseQuery(query)
	if err != nil {
		return nil, err
	}
	authority := a.good
	switch mood {
	case Good:
	case Garbage:
		return []byte("garbage"), nil
	case Expired:
		authority = a.expired
	case Another:
		request.Imprint[0] ^= 1
	case WrongNonce:
		request.Nonce.Add(request.Nonce, big.NewInt(1))
	default:
		return nil, errors.New("no such mood")
	}
	token, err := authority.Issue(request)
	if err != nil {
		return nil, err
	}
	return timestamp.MarshalResponse(token)
}

// ParseQuery reads what a TSA is asked.
func ParseQuery(query []byte) (*timestamp.Request, error) {
	var q struct {
		Version int
		Imprint struct {
			Algorithm pkix.AlgorithmIdentifier
			Hash      []byte
		}
		Policy  asn1.ObjectIdentifier `asn1:"optional"`
		Nonce   *big.Int              `asn1:"optional"`
		CertReq bool                  `asn1:"optional"`
	}
	rest, err := asn1.Unmarshal(query, &q)
	if err != nil || len(rest) > 0 || q.Version != 1 || len(q.Imprint.Hash) != sha256.Size {
		return nil, fmt.Errorf("%x asks for no time stamp over SHA-256: %v", query, err)
	}
	r := &timestamp.Request{Imprint: [sha256.Size]byte(q.Imprint.Hash), Nonce: q.Nonce, CertReq: q.CertReq}
	if len(q.Policy) > 0 {
		r.Policy, err = x509.ParseOID(q.Policy.String())
	}
	return r, err
}

// NewForStrangers makes a House whose tokens other programs can verify. Verify refuses the mock's keys by their
// values. The keys of this authority are as worthless, but other programs do not know them. Its clock stands at
// Start, like the mock's.
func NewForStrangers(t testing.TB) *House {
	t.Helper()
	return furnish(t, "", Authority(t, "", Start))
}

// Authority returns a time-stamping authority with worthless keys derived from its name. Its clock stands still. The
// same requests in the same order give the same tokens.
func Authority(t testing.TB, name string, now time.Time) *timestamp.Authority {
	t.Helper()
	rootKey, key := AuthorityKey(t, name+" root"), AuthorityKey(t, name)
	config := timestamp.CertificateConfig{Key: rootKey, Serial: big.NewInt(1), NotBefore: Start.AddDate(-1, 0, 0),
		NotAfter: Start.AddDate(99, 0, 0), Operator: "WORTHLESS: its keys are published " + name}
	root, err := timestamp.NewRoot(config)
	check(t, err)
	config.Key, config.Serial = key, big.NewInt(2)
	leaf, err := timestamp.NewCertificate(config, root, rootKey)
	check(t, err)
	a, err := timestamp.NewAuthority(timestamp.AuthorityConfig{Key: key, Certificate: leaf, Chain: []*x509.Certificate{root},
		Now: func() time.Time { return now }, Rand: stream(3), Policy: timestamp.MockPolicy()})
	check(t, err)
	return a
}

// AuthorityKey returns the key derived from a name. It signs without randomness (RFC 6979).
func AuthorityKey(t testing.TB, name string) crypto.Signer {
	t.Helper()
	seed := sha256.Sum256([]byte("jurattest: a worthless authority\x00" + name))
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), seed[:])
	check(t, err)
	return deterministic{key}
}

type deterministic struct{ *ecdsa.PrivateKey }

func (d deterministic) Sign(_ io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	return d.PrivateKey.Sign(nil, digest, opts)
}
