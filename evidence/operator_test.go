package evidence

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOperatorBodies(t *testing.T) {
	digest, err := ParseDigest(someDigest)
	if err != nil {
		t.Fatal(err)
	}
	body(t, LateStamp, LateStampBody{Stamps: []LateStamped{{Authority: "a", Kind: RFC3161, Record: digest, Token: digest}}})
	body(t, CheckpointStamp, CheckpointStampBody{Authority: "a", Checkpoint: "c", Token: []byte{1}})
	body(t, KeyEvent, KeyEventBody{Algorithm: ES256, By: "b", Certificates: [][]byte{{1}}, Custody: "owner", Event: KeyRotated, From: "2026-01-31T16:15:00Z",
		KeyID: digest, Name: "n", PublicKey: []byte{1}, Reason: "r", Replaces: digest, Role: RoleAgent})
	body(t, Erasure, ErasureBody{By: "b", Pointers: []string{"/prompt"}, Reason: "r", Record: digest})
}

func TestLateStampsAreBounded(t *testing.T) {
	for n, good := range map[int]bool{0: false, 1: true, MaxLateStamps: true, MaxLateStamps + 1: false} {
		body := LateStampBody{Stamps: make([]LateStamped, n)}
		for i := range body.Stamps {
			digest := DigestOf([]byte{byte(i), byte(i >> 8)})
			body.Stamps[i] = LateStamped{Authority: "a", Kind: RFC3161, Record: digest, Token: digest}
		}
		doc, err := EncodeOperatorBody(body)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ReadOperatorBody[LateStampBody](&Payload{ActionType: LateStamp, Response: doc}); (err == nil) != good {
			t.Errorf("%d stamps: %v", n, err)
		}
	}
}

// body writes and reads back a body, and checks that no member can be added to it or left out.
func body[B OperatorBody](t *testing.T, action ActionType, b B) {
	t.Helper()
	doc, err := EncodeOperatorBody(b)
	if err != nil {
		t.Fatal(err)
	}
	p := &Payload{ActionType: action, Response: doc}
	got, err := ReadOperatorBody[B](p)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&b, got); diff != "" {
		t.Errorf("%s (-written +read):\n%s", action, diff)
	}
	m, err := membersOf(doc)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range m.names() {
		if name == "public_key" || name == "replaces" || name == "certificates" {
			continue // which depend on the event
		}
		value := m[name]
		delete(m, name)
		p.Response = m.canonical()
		if _, err := ReadOperatorBody[B](p); err == nil {
			t.Errorf("%s: nobody misses %s", action, name)
		}
		m[name] = value
	}
	p.Response = []byte(strings.Replace(string(doc), "{", `{"other":1,`, 1))
	if _, err := ReadOperatorBody[B](p); err == nil {
		t.Errorf("%s: an unknown member is accepted", action)
	}
}

func TestOperatorChains(t *testing.T) {
	for _, action := range ActionTypes() {
		names := strings.Fields(table[action].required)
		if !slices.Contains(names, "chain_id") {
			names = append(names, "chain_id")
		}
		doc := strings.Replace(document(action, names...), sample["chain_id"], `"operator-keys"`, 1)
		_, err := ParseDraft([]byte(doc))
		if action.ByOperator() {
			if err != nil {
				t.Errorf("%s: %v", action, err)
			}
		} else {
			wantField(t, err, "chain_id")
		}
	}
}
