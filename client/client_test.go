package client_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/client"
	"jurat/client/api"
	"jurat/evidence"
	"jurat/evidence/property"
	"jurat/internal/test/jurattest"
	check "jurat/internal/test/must"
	"jurat/verify"
	"jurat/verify/trust"
)

const payload = `{"agent_id":"a","request_id":"r","timestamp":"2026-01-31T16:15:00Z","model":"m","model_version":"v","prompt":"p",
	"response":"r","parameters":{}}`

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func encoded(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// trustIn returns a trust file with one key.
func trustIn(signer evidence.Signer, public any) *trust.Trust {
	t := &trust.Trust{Format: trust.Format, Keys: []trust.Key{{Name: "a", Role: evidence.RoleAgent, Algorithm: signer.Info().Algorithm,
		KeyID: signer.Info().KeyID, PublicKey: must(evidence.MarshalPublicKey(public)), Custody: trust.ByOwner}}}
	return must(trust.Parse(must(t.Marshal())))
}

func Example() {
	// A private key as 'openssl genpkey -algorithm ed25519' writes it.
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		fmt.Println(err)
		return
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		fmt.Println(err)
		return
	}
	signer, err := client.ParseKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	if err != nil {
		fmt.Println(err)
		return
	}
	signed, err := client.Sign([]byte(`{"agent_id": "logistics-agent-v1", "request_id": "uuid", "timestamp": "2026-01-31T16:15:00Z",
		"model": "gpt-4.1", "model_version": "gpt-4.1-turbo-2026-01-25", "prompt": "Plan the best route.",
		"response": "Take the A9 by Nuremberg: 4.5 hours.", "parameters": {"temperature": 0.2}}`), signer)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(signed.Payload.Actor(), signed.Payload.ActionType, signed.Payload.Signers[0].Algorithm)
	fmt.Println(len(signed.Signatures), "signature,", len(signed.Timestamps), "time stamps")
	// Output:
	// logistics-agent-v1 model_output Ed25519
	// 1 signature, 0 time stamps
}

func TestSignAndCheck(t *testing.T) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	check.Do(t, err)
	signer := must(client.ParseKey(encoded("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(private)))))
	signed := must(client.Sign([]byte(payload), signer))
	reread := must(evidence.Open(must(signed.Marshal())))
	report := must(client.Check(signed, reread, trustIn(signer, private.Public())))
	f := report.Of(verify.NonRepudiation)
	check.Hold(t, f.Status == verify.Proved, "non-repudiation: %+v", f)
	f = report.Of(verify.Time)
	check.Hold(t, f.Status == verify.NotProved, "time of a record without a time stamp: %+v", f)
	other := must(client.Sign([]byte(payload), signer)) // the key has another id
	check.Fail(t, client.ErrOther, "another record")(client.Check(signed, other, nil))
	forged := *reread
	forged.Signatures = other.Signatures
	check.Fail(t, client.ErrOther, "another signature")(client.Check(signed, &forged, nil))
	forged.Signatures = nil
	check.Fail(t, client.ErrOther, "no signature")(client.Check(signed, &forged, nil))
}

func TestSignRefuses(t *testing.T) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	check.Do(t, err)
	signer := must(evidence.NewSigner(private, nil))
	for want, doc := range map[string]string{
		"field prompt: missing":            strings.Replace(payload, `"prompt":"p",`, "", 1),
		"this member twice":                strings.Replace(payload, `{`, `{"agent_id":"b",`, 1),
		"an act of the operator":           `{"action_type":"erasure","agent_id":"a","timestamp":"2026-01-31T16:15:00Z","response":{}}`,
		"names other keys than those that": strings.Replace(payload, `{`, `{"signers":[{"alg":"ES256","key_id":"`+evidence.DigestOf(nil).String()+`"}],`, 1),
	} {
		check.Refuse(t, want, "signed")(client.Sign([]byte(doc), signer))
		check.Refuse(t, want, "prepared")(client.Prepare([]byte(doc), private.Public()))
	}
	check.Refuse(t, "", "Sign accepted a payload without signers")(client.Sign([]byte(payload)))
	check.Refuse(t, "", "Prepare accepted a payload without signers")(client.Prepare([]byte(payload)))
}

// TestHighS: a program that does not know low S signs with a high S. Assemble replaces the signature by its low-S form.
func TestHighS(t *testing.T) {
	private := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	signer := must(evidence.NewSigner(private, nil))
	canonical := must(client.Prepare([]byte(payload), private.Public()))
	low := must(signer.Sign(canonical))
	var parts struct{ R, S *big.Int }
	check.Get(asn1.Unmarshal(low, &parts))(t)
	parts.S.Sub(elliptic.P256().Params().N, parts.S)
	high := must(asn1.Marshal(parts))
	r := must(client.Assemble(canonical, high))
	check.Hold(t, string(r.Signatures[0]) == string(low), "%x, want %x", r.Signatures[0], low)
	given := must(evidence.OpenParts(canonical, [][]byte{high}, nil))
	check.Fail(t, nil, "its twin is another")(client.Check(given, r, nil))
	for _, signatures := range [][][]byte{nil, {low, low}, {append(low, 0)}, {[]byte("no signature")}} {
		check.Refuse(t, "", "assembled with", signatures)(client.Assemble(canonical, signatures...))
	}
	for _, text := range []string{string(canonical) + "\n", " " + string(canonical), "{}", ""} {
		check.Refuse(t, "", "assembled", text)(client.Assemble([]byte(text), low))
	}
}

// TestOpenSSL reads keys and signatures made by OpenSSL, and has OpenSSL verify signatures of this package.
func TestOpenSSL(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil && os.Getenv("CI") != "true" {
		t.Skip("openssl is not installed")
	}
	for name, make := range map[string]string{
		"P-256":   "openssl ecparam -genkey -name prime256v1 -noout | openssl pkcs8 -topk8 -nocrypt -out private.pem",
		"RSA":     "openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out private.pem",
		"Ed25519": "openssl genpkey -algorithm ed25519 -out private.pem",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			shell := func(line string) {
				t.Helper()
				cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", line)
				cmd.Dir = dir
				out, err := cmd.CombinedOutput()
				check.Need(t, err == nil, "%s: %v\n%s", line, err, out)
			}
			shell(make)
			shell("openssl pkey -in private.pem -pubout -out public.pem")
			read := func(file string) []byte { return must(os.ReadFile(filepath.Join(dir, file))) }
			public := must(client.ParsePublicKey(read("public.pem")))
			signer := must(client.ParseKey(read("private.pem")))
			canonical := must(client.Prepare([]byte(payload), public))
			check.Do(t, os.WriteFile(filepath.Join(dir, "payload.json"), canonical, 0o600))
			for range 4 { // about half of OpenSSL's ECDSA signatures have a high S
				if name == "Ed25519" {
					shell("openssl pkeyutl -sign -inkey private.pem -rawin -in payload.json -out sig.bin")
				} else {
					shell("openssl dgst -sha256 -sign private.pem -out sig.bin payload.json")
				}
				r := must(client.Assemble(canonical, read("sig.bin")))
				check.Want(t, r.CheckSignature(0, public), nil)
			}
			check.Hold(t, signer.Info().KeyID == must(evidence.KeyIDOf(public)), "the private key does not belong to the public key")
		})
	}
}

func TestKeysRefused(t *testing.T) {
	private := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	good := encoded("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(private)))
	public := encoded("PUBLIC KEY", must(x509.MarshalPKIXPublicKey(private.Public())))
	check.Fail(t, nil, "with a comment")(client.ParseKey(append([]byte("# mine\n"), good...)))
	for want, text := range map[string][]byte{
		"found none":                   nil,
		"openssl pkcs8 -topk8":         encoded("EC PRIVATE KEY", must(x509.MarshalECPrivateKey(private))),
		`found "PUBLIC KEY"`:           public,
		"another after it":             append(append([]byte{}, good...), good...),
		"parsing private key":          encoded("PRIVATE KEY", []byte{1, 2, 3}),
		"an ECDSA key on P-384":        encoded("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))))),
		`found "ENCRYPTED PRIVATE KEY`: encoded("ENCRYPTED PRIVATE KEY", []byte{1}),
	} {
		check.Refuse(t, want)(client.ParseKey(text))
	}
	check.Refuse(t, "-pubout", "a private key")(client.ParsePublicKey(good))
	check.Fail(t, nil)(client.ParsePublicKey(public))
}

// FuzzParseKeys: every key that parses can make signatures that are valid by this format.
func FuzzParseKeys(f *testing.F) {
	private := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	f.Add(encoded("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(private))))
	f.Add(encoded("PUBLIC KEY", must(x509.MarshalPKIXPublicKey(private.Public()))))
	f.Add([]byte("-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		signer, err := client.ParseKey(text)
		check.Hold(t, err != nil || !signer.Info().KeyID.IsZero(), "a key without an id")
		if public, err := client.ParsePublicKey(text); err == nil {
			check.Fail(t, nil)(evidence.KeyIDOf(public))
		}
	})
}

const refund = `{"agent_id":"shop","request_id":"r-1","timestamp":"2026-01-31T16:15:00Z","model":"m","model_version":"1",
	"prompt":"p","response":"r","parameters":{},"metadata":{"amount":120.5}}`

// TestProve: an owner seals a value apart, and proves a property of it without any installation.
func TestProve(t *testing.T) {
	_, private, err := ed25519.GenerateKey(nil)
	check.Do(t, err)
	signer := must(evidence.NewSigner(private, nil))
	apart := client.Apart{Pointers: []string{"/prompt"}, Provable: map[string]property.Kind{"/metadata/amount": "decimal:2"}}
	mine := must(client.SignApart([]byte(refund), apart, signer))
	sent := *mine
	sent.Disclosures = nil
	about := evidence.Member{Record: &sent, Pointer: "/metadata/amount"}
	below := property.Statement{Form: property.Range, Lo: jsontext.Value("0"), Hi: jsontext.Value("5000")}
	check.Want(t, client.Prove(below, about), evidence.ErrWithheld)
	check.Do(t, client.Disclose(&sent, mine))
	for range 2 { // the same statement again takes the place of the first
		check.Do(t, client.Prove(below, about))
	}
	check.Get(evidence.Withhold([]*evidence.Record{&sent}, []string{"/metadata/amount", "/prompt"}))(t)
	file := must(sent.Marshal())
	read := must(evidence.Open(file))
	if found := verify.Record(read, verify.Options{}); len(read.Properties) != 1 || len(found.Properties) != 1 || found.Of(verify.Property).Status != verify.Proved || len(read.Disclosures) != 0 {
		t.Errorf("%+v", found)
	}

	if err := client.Prove(property.Statement{Form: property.Range, Lo: jsontext.Value("0"), Hi: jsontext.Value("100")}, evidence.Member{Record: mine, Pointer: "/metadata/amount"}); !errors.Is(err, property.ErrFalse) {
		t.Errorf("false: %v", err)
	}
	check.Want(t, client.Prove(below, evidence.Member{Record: mine, Pointer: "/prompt"}), evidence.ErrUnprovable)
	lied := *mine
	lied.Disclosures = slices.Clone(mine.Disclosures)
	lied.Disclosures[0].Value = jsontext.Value("99.5")
	check.Want(t, client.Prove(below, evidence.Member{Record: &lied, Pointer: "/metadata/amount"}), evidence.ErrDisclosure)
	err = client.Disclose(&sent, &lied)
	check.Hold(t, errors.Is(err, evidence.ErrDisclosure) && len(sent.Disclosures) == 0, "disclosing another value: %v", err)
	_, err = client.SignApart([]byte(refund), client.Apart{Provable: map[string]property.Kind{"/metadata/amount": "date"}}, signer)
	check.Hold(t, err != nil, "a number was made provable as a date")
}

// TestProperty: the request has the statement as docs/api.md writes it, and the answer is the server's bundle.
func TestProperty(t *testing.T) {
	house := jurattest.New(t)
	bundle := house.Bundle(t, house.Seal(t, must(evidence.ParseDraft([]byte(strings.Replace(refund, "2026-01-31", "2025-12-31", 1)))).Payload))
	doc := must(bundle.Marshal())
	var path, sent string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, sent = r.Method+" "+r.URL.Path, string(must(io.ReadAll(r.Body)))
		w.Header().Set("Content-Type", "application/json")
		check.Fail(t, nil)(w.Write(doc))
	}))
	t.Cleanup(s.Close)
	got, err := connect(t, client.Config{URL: s.URL}).Property(t.Context(), "a/b", api.Property{Form: "range", Pointer: "/metadata/amount", Lo: []byte("0"), Hi: []byte("5000")})
	check.Hold(t, err == nil && got.Records[0].Digest == bundle.Records[0].Digest, "%v, %v", got, err)
	check.Hold(t, path == "POST /v1/records/a/b/properties" && sent == `{"form":"range","pointer":"/metadata/amount","lo":0,"hi":5000}`,
		"%s %s", path, sent)
}

func connect(t *testing.T, c client.Config) *client.Client {
	t.Helper()
	return must(client.NewClient(c))
}

// answering is a server that always gives the same answer.
func answering(t *testing.T, status int, media, body string) (url string, asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", media)
		w.WriteHeader(status)
		if _, err := w.Write([]byte(body)); err != nil {
			t.Log(err) // a client that reads no further
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

// sentinels maps the names of problems to the errors of package api.
var sentinels = map[string]error{"malformed": api.ErrMalformed, "sign-in": api.ErrSignIn, "expired": api.ErrExpired, "revoked": api.ErrRevoked,
	"forbidden": api.ErrForbidden, "cross-origin": api.ErrCrossOrigin, "plain-http": api.ErrPlainHTTP, "form": api.ErrForm, "own-work": api.ErrOwnWork, "not-found": api.ErrNotFound, "gone": api.ErrGone,
	"method": api.ErrMethod, "conflict": api.ErrConflict, "owner-key": api.ErrOwnerKey, "precondition": api.ErrPrecondition, "too-large": api.ErrTooLarge,
	"media-type": api.ErrMediaType, "invalid": api.ErrInvalid, "key-reused": api.ErrKeyReused, "too-many": api.ErrTooMany, "internal": api.ErrInternal,
	"unavailable": api.ErrUnavailable}

// TestProblemsAreTheSameErrors sends each problem over HTTP. The client must return the same error, and no other.
func TestProblemsAreTheSameErrors(t *testing.T) {
	problems := api.Problems()
	check.Need(t, len(problems) == len(sentinels), "%d problems and %d errors", len(problems), len(sentinels))
	for _, p := range problems {
		doc := check.Get(json.Marshal(api.NewProblem(errors.Join(errors.New("this time"), sentinels[p.Name()]))))(t)
		url, _ := answering(t, p.Status, api.ProblemMediaType, string(doc))
		_, err := connect(t, client.Config{URL: url, Attempts: 1}).Record(t.Context(), "x")
		for name, sentinel := range sentinels {
			check.Hold(t, errors.Is(err, sentinel) == (name == p.Name()), "%s is %q: %v", p.Name(), name, err)
		}
	}
}

func TestWhatIsNoAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		status      int
		media, body string
	}{
		"a page of a proxy":       {502, "text/html", "<h1>Bad Gateway</h1>"},
		"a problem of another":    {404, "application/json", `{"type":"urn:jurat:problem:not-found","status":404}`},
		"a status that is not so": {404, api.ProblemMediaType, `{"type":"urn:jurat:problem:forbidden","status":403}`},
		"no record":               {200, "application/json", `{}`},
		"too much":                {200, "application/json", strings.Repeat(" ", 2000)},
	} {
		url, _ := answering(t, c.status, c.media, c.body)
		_, err := connect(t, client.Config{URL: url, MaxAnswer: 1000}).Record(t.Context(), "x")
		check.Hold(t, err != nil && !errors.Is(err, api.ErrNotFound) && !errors.Is(err, api.ErrForbidden), "%s: %v", name, err)
	}
}

func TestTokensGoNowhereInTheClear(t *testing.T) {
	for url, good := range map[string]bool{"http://jurat.example": false, "https://jurat.example": true, "http://127.0.0.1:1": true, "http://[::1]:1": true,
		"http://localhost": true, "ftp://127.0.0.1": false, "jurat.example": false, "": false, "https://": false, ":": false} {
		_, err := client.NewClient(client.Config{URL: url, Token: "t"})
		check.Hold(t, (err == nil) == good, "%q: %v", url, err)
	}
	check.Fail(t, nil, "without a token")(client.NewClient(client.Config{URL: "http://jurat.example"}))
}

// A transport answers requests without a network.
type transport func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestTriesAgain: the client sends a request again if the server could not answer now, with the same idempotency key.
func TestTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var keys []string
		away := transport(func(r *http.Request) (*http.Response, error) {
			keys = append(keys, r.Header.Get(api.IdempotencyKey))
			return nil, errors.New("connection reset")
		})
		c := connect(t, client.Config{URL: "https://jurat.example", HTTP: &http.Client{Transport: away}})
		began := time.Now()
		check.Refuse(t, "", "Seal succeeded although no server answered")(c.Seal(t.Context(), []byte("{}")))
		check.Hold(t, len(keys) == 3 && keys[0] != "" && keys[0] == keys[1] && keys[1] == keys[2], "keys %q", keys)
		check.Equal(t, time.Since(began), 600*time.Millisecond)
		keys = nil
		_, err := c.WithKey("mine").Seal(t.Context(), []byte("{}"))
		check.Hold(t, err != nil && keys[0] == "mine", "keys %q, %v", keys, err)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		keys = nil
		_, err = c.Seal(ctx, []byte("{}"))
		check.Hold(t, errors.Is(err, context.DeadlineExceeded) && len(keys) == 1, "%d attempts, %v", len(keys), err)
	})
	url, asked := answering(t, 422, api.ProblemMediaType, `{"type":"urn:jurat:problem:invalid","title":"t","status":422,"detail":"d"}`)
	_, err := connect(t, client.Config{URL: url}).Seal(t.Context(), []byte("{}"))
	check.Hold(t, errors.Is(err, api.ErrInvalid) && asked.Load() == 1, "asked %d times, %v", asked.Load(), err)
}

// TestRedirectsAreNotFollowed: the client follows no redirect, because another host must not get the token or the text
// to be sealed.
func TestRedirectsAreNotFollowed(t *testing.T) {
	elsewhere, asked := answering(t, http.StatusOK, "application/json", "{}")
	for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		s := httptest.NewServer(http.RedirectHandler(elsewhere, status))
		c := connect(t, client.Config{URL: s.URL, Token: "jurat_x"})
		check.Refuse(t, "", status, "no error")(c.Seal(t.Context(), []byte(`{"secret":1}`)))
		check.Refuse(t, "", status, "no error")(c.Record(t.Context(), "x"))
		for _, err := range c.Watch(t.Context(), "trial-x", 0) {
			check.Hold(t, err != nil, "%d: no error", status)
		}
		s.Close()
	}
	check.Equal(t, asked.Load(), 0, "requests to the other host")
}

// TestResumeAndCancel: each asks for the trial by its id, and a cancellation says why.
func TestResumeAndCancel(t *testing.T) {
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.EscapedPath()+" "+string(must(io.ReadAll(r.Body))))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"trial-1"}`)
	}))
	defer s.Close()
	c := connect(t, client.Config{URL: s.URL})
	check.Equal(t, must(c.Resume(t.Context(), "a/b")).ID, "trial-1")
	check.Equal(t, must(c.Cancel(t.Context(), "a/b", "by mistake")).ID, "trial-1")
	want := []string{"POST /v1/submissions/a%2Fb/resume ", `POST /v1/submissions/a%2Fb/cancel {"reason":"by mistake"}`}
	check.Hold(t, slices.Equal(asked, want), "%q", asked)
}

// telling is a server that sends the events of a trial in parts, one part for each connection. It records the requests.
func telling(t *testing.T, pieces ...string) (url string, asked *[]string) {
	t.Helper()
	asked = new([]string)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.URL.Query().Get("after"))
		piece := pieces[min(len(*asked), len(pieces))-1]
		if piece == "over" {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		fmt.Fprint(w, "retry: 1000\n\n:\n\n"+piece)
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

func event(seq int, kind string) string {
	return fmt.Sprintf("id: %d\nevent: %s\ndata: {\"type\":%q,\"seq\":%d,\"at\":\"2026-01-01T00:00:00Z\",\"submissionId\":\"trial-x\",\"more\":1}\n\n", seq, kind, kind, seq)
}

func heard(t *testing.T, c *client.Client, after int64) (seqs []int64, err error) {
	t.Helper()
	for e, err := range c.Watch(t.Context(), "trial-x", after) {
		if err != nil {
			return seqs, err
		}
		check.Hold(t, e.SubmissionID == "trial-x" && strings.Contains(string(e.JSON), `"more":1`), "%+v", e)
		seqs = append(seqs, e.Seq)
	}
	return seqs, nil
}

// TestWatchGoesOn: Watch delivers each event once, however often the connection ends.
func TestWatchGoesOn(t *testing.T) {
	url, asked := telling(t, event(3, "a")+event(4, "b"), event(5, "c"), "", event(6, "d")[:20], event(6, "d")+event(7, api.LastEvent))
	c := connect(t, client.Config{URL: url})
	seqs, err := heard(t, c, 2)
	if err != nil || !slices.Equal(seqs, []int64{3, 4, 5, 6, 7}) || !slices.Equal(*asked, []string{"2", "4", "5", "5", "5"}) {
		t.Errorf("%v, %v, asked for %v", err, seqs, *asked)
	}
	url, _ = telling(t, "over")
	seqs, err = heard(t, connect(t, client.Config{URL: url}), 7)
	check.Hold(t, err == nil && len(seqs) == 0, "%v, %v", err, seqs)
}

// TestWatchGivesUp: Watch returns an error after several failed attempts, at once if the server refuses, and at once if
// an event is missing.
func TestWatchGivesUp(t *testing.T) {
	url, asked := telling(t, event(1, "a"), "")
	seqs, err := heard(t, connect(t, client.Config{URL: url, Attempts: 2}), 0)
	check.Hold(t, err != nil && len(seqs) == 1 && len(*asked) == 3, "%v, %v, asked for %v", err, seqs, *asked)
	url, asked = telling(t, event(1, "a")+event(3, "b"))
	seqs, err = heard(t, connect(t, client.Config{URL: url}), 0)
	check.Hold(t, err != nil && len(seqs) == 1 && len(*asked) == 1, "%v, %v, asked for %v", err, seqs, *asked)
	url, count := answering(t, http.StatusForbidden, api.ProblemMediaType, `{"type":"urn:jurat:problem:forbidden","title":"x","status":403,"detail":"x"}`)
	_, err = heard(t, connect(t, client.Config{URL: url}), 0)
	check.Hold(t, errors.Is(err, api.ErrForbidden) && count.Load() == 1, "%v, asked %d times", err, count.Load())
	url, _ = telling(t, event(1, strings.Repeat("a", 1000)))
	check.Refuse(t, "500 bytes")(heard(t, connect(t, client.Config{URL: url, MaxAnswer: 500}), 0))
	url, asked = telling(t, event(1, "a")+event(2, "b"))
	for range connect(t, client.Config{URL: url}).Watch(t.Context(), "trial-x", 0) {
		break
	}
	check.Hold(t, len(*asked) == 1, "the requests were %v, want none after the caller stopped", *asked)
}

// TestConduct: bundles come one by one, in order. An answer that breaks off, or is no bundle, or too long, is an error after what came before.
func TestConduct(t *testing.T) {
	h := jurattest.New(t)
	var files [2]string
	for i := range files {
		record := h.Seal(t, evidence.Payload{AgentID: "agent", RequestID: fmt.Sprint(i), Timestamp: "2026-01-01T00:00:00Z", Model: "m", ModelVersion: "1",
			Prompt: jsontext.Value(`"p"`), Response: jsontext.Value(`"r"`), Parameters: jsontext.Value(`{}`)})
		doc := must(h.Bundle(t, record).Marshal())
		files[i] = string(doc)
	}
	for _, c := range []struct {
		name, body, wrong string
		length, files     int
	}{
		{"two files", files[0] + files[1], "", 0, 2},
		{"none", "", "", 0, 0},
		{"without a line feed at its end", files[0] + strings.TrimSpace(files[1]), "", 0, 2},
		{"it breaks off in a file", files[0] + files[1][:len(files[1])/2], "unexpected EOF", len(files[0]) + len(files[1]), 1},
		{"it breaks off after a file", files[0], "unexpected EOF", len(files[0]) + len(files[1]), 1},
		{"half a file", files[0] + files[1][:len(files[1])/2], "file 2: ", 0, 1},
		{"no bundle", "{}\n" + files[0], "file 1: ", 0, 0},
		{"an empty line", files[0] + "\n" + files[1], "file 2: ", 0, 1},
		{"too long", files[0] + files[0][:2000] + strings.Repeat(" ", 100_000), "more than 90000 bytes", 0, 1},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			check.Hold(t, r.URL.EscapedPath() == "/v1/agents/a%2Fb%20c/conduct" && r.URL.RawQuery == "size=7", "%v", r.URL)
			if c.length > 0 {
				w.Header().Set("Content-Length", fmt.Sprint(c.length))
			}
			_, _ = io.WriteString(w, c.body)
		}))
		n, failed := 0, error(nil)
		for b, err := range connect(t, client.Config{URL: s.URL, MaxAnswer: 90_000}).Conduct(t.Context(), "a/b c", 7) {
			if failed = err; err == nil {
				n += len(b.Records)
			}
		}
		s.Close()
		check.Hold(t, n == c.files && (failed == nil) == (c.wrong == "") && (failed == nil || strings.Contains(failed.Error(), c.wrong)),
			"%s: %d files, %v", c.name, n, failed)
	}
	url, _ := answering(t, http.StatusNoContent, "text/plain", "")
	for _, err := range connect(t, client.Config{URL: url}).Conduct(t.Context(), "a", 7) {
		check.Hold(t, err != nil, "no answer is taken for no files")
	}
	url, _ = answering(t, http.StatusNotFound, api.ProblemMediaType, `{"type":"urn:jurat:problem:not-found","title":"x","status":404}`)
	for _, err := range connect(t, client.Config{URL: url}).Conduct(t.Context(), "a", 7) {
		var p *api.Problem
		check.Hold(t, errors.As(err, &p), "%v", err)
	}
}
