package client_test

import (
	"crypto/ed25519"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/api"
	"jurat/client"
	"jurat/evidence"
	"jurat/jurattest"
	"jurat/property"
	"jurat/property/proving"
	"jurat/verify"
)

const refund = `{"agent_id":"shop","request_id":"r-1","timestamp":"2026-01-31T16:15:00Z","model":"m","model_version":"1",
	"prompt":"p","response":"r","parameters":{},"metadata":{"amount":120.5}}`

// TestProve: an owner seals a value apart, and proves a property of it without any installation.
func TestProve(t *testing.T) {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	signer := must(evidence.NewSigner(private, nil))
	apart := client.Apart{Pointers: []string{"/prompt"}, Provable: map[string]property.Kind{"/metadata/amount": "decimal:2"}}
	mine := must(client.SignApart([]byte(refund), apart, signer))
	sent := *mine
	sent.Disclosures = nil
	about := proving.Member{Record: &sent, Pointer: "/metadata/amount"}
	below := property.Statement{Form: property.Range, Lo: jsontext.Value("0"), Hi: jsontext.Value("5000")}
	if err := client.Prove(below, about); !errors.Is(err, proving.ErrWithheld) {
		t.Errorf("without the value: %v", err)
	}
	if err := client.Disclose(&sent, mine); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the same statement again takes the place of the first
		if err := client.Prove(below, about); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := evidence.Withhold([]*evidence.Record{&sent}, []string{"/metadata/amount", "/prompt"}); err != nil {
		t.Fatal(err)
	}
	file := must(sent.Marshal())
	read := must(evidence.Open(file))
	if found := verify.Record(read, verify.Options{}); len(read.Properties) != 1 || len(found.Properties) != 1 || found.Of(verify.Property).Status != verify.Proved || len(read.Disclosures) != 0 {
		t.Errorf("%+v", found)
	}

	if err := client.Prove(property.Statement{Form: property.Range, Lo: jsontext.Value("0"), Hi: jsontext.Value("100")}, proving.Member{Record: mine, Pointer: "/metadata/amount"}); !errors.Is(err, property.ErrFalse) {
		t.Errorf("false: %v", err)
	}
	if err := client.Prove(below, proving.Member{Record: mine, Pointer: "/prompt"}); !errors.Is(err, proving.ErrUnprovable) {
		t.Errorf("not provable: %v", err)
	}
	lied := *mine
	lied.Disclosures = slices.Clone(mine.Disclosures)
	lied.Disclosures[0].Value = jsontext.Value("99.5")
	if err := client.Prove(below, proving.Member{Record: &lied, Pointer: "/metadata/amount"}); !errors.Is(err, evidence.ErrDisclosure) {
		t.Errorf("another value: %v", err)
	}
	if err := client.Disclose(&sent, &lied); !errors.Is(err, evidence.ErrDisclosure) || len(sent.Disclosures) != 0 {
		t.Errorf("disclosing another value: %v", err)
	}
	if _, err := client.SignApart([]byte(refund), client.Apart{Provable: map[string]property.Kind{"/metadata/amount": "date"}}, signer); err == nil {
		t.Error("a number was made provable as a date")
	}
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
		if _, err := w.Write(doc); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	got, err := connect(t, client.Config{URL: s.URL}).Property(t.Context(), "a/b", api.Property{Form: "range", Pointer: "/metadata/amount", Lo: []byte("0"), Hi: []byte("5000")})
	if err != nil || got.Records[0].Digest != bundle.Records[0].Digest {
		t.Errorf("%v, %v", got, err)
	}
	if path != "POST /v1/records/a/b/properties" || sent != `{"form":"range","pointer":"/metadata/amount","lo":0,"hi":5000}` {
		t.Errorf("%s %s", path, sent)
	}
}
