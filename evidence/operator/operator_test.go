package operator

import (
	"maps"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/internal/must"
)

func TestOperatorBodies(t *testing.T) {
	digest := evidence.DigestOf([]byte("a record"))
	body(t, evidence.LateStamp, LateStampBody{Stamps: []LateStamped{{Authority: "a", Kind: evidence.RFC3161, Record: digest, Token: digest}}})
	body(t, evidence.CheckpointStamp, CheckpointStampBody{Authority: "a", Checkpoint: "c", Token: []byte{1}})
	body(t, evidence.KeyEvent, KeyEventBody{Algorithm: evidence.ES256, By: "b", Card: digest, Certificates: [][]byte{{1}}, Custody: "owner", Event: KeyRotated, Protection: &Protection{Kind: "pkcs11", Serial: "1"}, From: "2026-01-31T16:15:00Z",
		KeyID: digest, Name: "n", PublicKey: []byte{1}, Reason: "r", Replaces: digest, Role: evidence.RoleAgent})
	body(t, evidence.Erasure, ErasureBody{By: "b", Pointers: []string{"/prompt"}, Reason: "r", Record: digest})
}

func TestLateStampsAreBounded(t *testing.T) {
	for n, good := range map[int]bool{0: false, 1: true, MaxLateStamps: true, MaxLateStamps + 1: false} {
		body := LateStampBody{Stamps: make([]LateStamped, n)}
		for i := range body.Stamps {
			digest := evidence.DigestOf([]byte{byte(i), byte(i >> 8)})
			body.Stamps[i] = LateStamped{Authority: "a", Kind: evidence.RFC3161, Record: digest, Token: digest}
		}
		doc := must.Get(Encode(body))(t)
		if _, err := Read[LateStampBody](&evidence.Payload{ActionType: evidence.LateStamp, Response: doc}); (err == nil) != good {
			t.Errorf("%d stamps: %v", n, err)
		}
	}
}

// body writes a body and reads it back. It checks that no member can be added or left out.
func body[B Body](t *testing.T, action evidence.ActionType, b B) {
	t.Helper()
	doc := must.Get(Encode(b))(t)
	p := &evidence.Payload{ActionType: action, Response: doc}
	got := must.Get(Read[B](p))(t)
	if diff := cmp.Diff(&b, got); diff != "" {
		t.Errorf("%s (-written +read):\n%s", action, diff)
	}
	var m map[string]jsontext.Value
	must.Do(t, json.Unmarshal(doc, &m))
	for name := range m {
		if name == "public_key" || name == "replaces" || name == "certificates" || name == "card" || name == "protection" ||
			name == "reason" && action == evidence.TrialEvent {
			continue // which depend on the event
		}
		fewer := maps.Clone(m)
		delete(fewer, name)
		p.Response = must.Get(json.Marshal(fewer, json.Deterministic(true)))(t)
		if _, err := Read[B](p); err == nil {
			t.Errorf("%s: accepted without %s", action, name)
		}
	}
	p.Response = []byte(strings.Replace(string(doc), "{", `{"other":1,`, 1))
	if _, err := Read[B](p); err == nil {
		t.Errorf("%s: an unknown member is accepted", action)
	}
}

func TestReadErasure(t *testing.T) {
	digest := evidence.DigestOf(nil)
	read := func(b ErasureBody, saw ...evidence.Digest) error {
		doc, err := Encode(b)
		if err != nil {
			t.Fatal(err)
		}
		_, err = ReadErasure(&evidence.Payload{ActionType: evidence.Erasure, Saw: saw, Response: doc})
		return err
	}
	good := ErasureBody{By: "b", Pointers: []string{"/context", "/prompt"}, Reason: "r", Record: digest}
	if err := read(good, digest); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*ErasureBody){
		"nobody":      func(b *ErasureBody) { b.By = "" },
		"no reason":   func(b *ErasureBody) { b.Reason = "" },
		"no record":   func(b *ErasureBody) { b.Record = evidence.Digest{} },
		"no pointer":  func(b *ErasureBody) { b.Pointers = nil },
		"not sorted":  func(b *ErasureBody) { b.Pointers = []string{"/prompt", "/context"} },
		"twice":       func(b *ErasureBody) { b.Pointers = []string{"/prompt", "/prompt"} },
		"no pointers": func(b *ErasureBody) { b.Pointers = []string{"prompt"} },
	} {
		b := good
		change(&b)
		if read(b, b.Record) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if read(good) == nil || read(good, digest, evidence.DigestOf([]byte("x"))) == nil {
		t.Error("saw is not looked at")
	}
	if _, err := ReadErasure(&evidence.Payload{ActionType: evidence.LateStamp}); err == nil {
		t.Error("an act of another type was read as an erasure")
	}
}

// FuzzReadErasure: an erasure that ReadErasure accepts marshals back to the same bytes.
func FuzzReadErasure(f *testing.F) {
	digest := evidence.DigestOf(nil)
	f.Add(`{"by":"b","pointers":["/context","/prompt"],"reason":"r","record":"` + digest.String() + `"}`)
	f.Add(`{"by":"b","pointers":[],"reason":"r","record":"` + digest.String() + `"}`)
	f.Add(`{"pointers":null}`)
	f.Fuzz(func(t *testing.T, response string) {
		p := &evidence.Payload{ActionType: evidence.Erasure, Saw: []evidence.Digest{digest}, Response: []byte(response)}
		body, err := ReadErasure(p)
		if err != nil {
			return
		}
		again, err := Encode(*body)
		if err != nil || string(again) != response || body.Record != digest {
			t.Errorf("%q is read as %+v, and written as %q, %v", response, body, again, err)
		}
	})
}
