package evidence

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/sha256"
	"path/filepath"
	"testing"

	"jurat/internal/must"
	"jurat/internal/sigkey"
)

// addFiles adds the committed files that match as seeds of a fuzz target.
func addFiles(f *testing.F, pattern string) {
	f.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		f.Fatalf("no seeds in %s: %v", pattern, err)
	}
	for _, name := range names {
		f.Add(readFile(f, name))
	}
}

// FuzzCanonical: the canonical form of a canonical form is itself, and it has the same values as the document.
func FuzzCanonical(f *testing.F) {
	for _, test := range accepted {
		f.Add([]byte(test.doc))
	}
	for _, test := range refused {
		f.Add([]byte(test.doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		before := bytes.Clone(doc)
		form, err := Canonical(doc)
		if !bytes.Equal(doc, before) {
			t.Fatal("Canonical changed its input")
		}
		if err != nil {
			return
		}
		again, err := Canonical(form)
		if err != nil || !bytes.Equal(again, form) {
			t.Fatalf("the form %q has the form %q, %v", form, again, err)
		}
	})
}

// FuzzParseDraft: Seal accepts every accepted draft, the record keeps all of its members, opens, and marshals to the
// same bytes.
func FuzzParseDraft(f *testing.F) {
	addFiles(f, "testdata/source/*.json")
	addFiles(f, filepath.Join(vectorsDir, "*.canonical.json"))
	for action := range table {
		f.Add([]byte(document(action, "agent_id", "timestamp", "response", "chain_position", "saw")))
	}
	signer := testSigner(f, Ed25519)
	f.Fuzz(func(t *testing.T, doc []byte) {
		draft, err := ParseDraft(doc)
		if err != nil {
			return
		}
		r, err := draft.Seal(Sealing{Signers: []Signer{signer}, Time: testTime, RecordID: testID})
		if err != nil {
			if draft.Signers != nil {
				return // it asks for other keys
			}
			t.Fatalf("Seal refuses an accepted draft: %v", err)
		}
		if form, err := Canonical(r.Canonical()); err != nil || !bytes.Equal(form, r.Canonical()) {
			t.Fatalf("sealed is %s\nits form %s, %v", r.Canonical(), form, err)
		}
		if again, err := Canonical(marshal(r.Payload)); err != nil || !bytes.Equal(again, r.Canonical()) {
			t.Fatalf("sealed is %s\nthe struct %s, %v", r.Canonical(), again, err)
		}
		opened, err := Open(marshalRecord(t, r))
		if err != nil || !bytes.Equal(opened.Canonical(), r.Canonical()) {
			t.Fatalf("the record does not open as it was sealed: %v", err)
		}
		sealed := must.Get(membersOf(r.Canonical()))(t)
		for name, value := range draft.members {
			if !bytes.Equal(sealed[name], value) {
				t.Fatalf("%s was %s and is %s", name, value, sealed[name])
			}
		}
	})
}

// FuzzOpen: a record that opens marshals back to the same bytes.
func FuzzOpen(f *testing.F) {
	addFiles(f, filepath.Join(vectorsDir, "*.record.json"))
	f.Add(marshalRecord(f, richRecord(f)))
	f.Fuzz(func(t *testing.T, file []byte) {
		r, err := Open(file)
		if err != nil {
			return
		}
		if again := marshalRecord(t, r); !bytes.Equal(again, file) {
			t.Fatalf("%q opens and marshals to %q", file, again)
		}
		if form, err := canonicalOf(file); err == nil && form != string(file) {
			t.Fatalf("%q opens, but is not canonical", file)
		}
		r.CheckDisclosures() // must not panic on any signature
		r.LogEntry(LogCounts{})
	})
}

// FuzzParseBundle: a bundle that parses marshals back to the same bytes.
func FuzzParseBundle(f *testing.F) {
	addFiles(f, filepath.Join(vectorsDir, "*.bundle.json"))
	f.Add(marshalBundle(f, testBundle(f)))
	f.Fuzz(func(t *testing.T, file []byte) {
		b, err := ParseBundle(file)
		if err != nil {
			_ = err.Error()
			return
		}
		if again := marshalBundle(t, b); !bytes.Equal(again, file) {
			t.Fatalf("%q parses and marshals to %q", file, again)
		}
	})
}

// FuzzCheckSignature: each ECDSA signature has exactly one accepted encoding. An accepted signature equals the signer's.
// One that is DER with a low S stays the same under lowS.
func FuzzCheckSignature(f *testing.F) {
	key, signer, payload := testKey(f, ES256), testSigner(f, ES256), []byte("payload")
	right := must.Get(signer.Sign(payload))(f)
	f.Add(right)
	f.Add(zeroBeforeR(right))
	f.Add([]byte{0x30, 6, 2, 1, 1, 2, 1, 1})
	f.Add([]byte{0x30, 0x80, 2, 1, 1, 2, 1, 1, 0, 0})
	digest := sha256.Sum256(payload)
	f.Fuzz(func(t *testing.T, signature []byte) {
		err := CheckSignature(key.Public(), signer.Info(), payload, signature)
		if err == nil && !bytes.Equal(signature, right) {
			t.Fatalf("%x: a second signature", signature)
		}
		if sigkey.StrictECDSA(signature) != nil {
			return
		}
		if (err == nil) != ecdsa.VerifyASN1(key.Public().(*ecdsa.PublicKey), digest[:], signature) {
			t.Fatalf("%x: the encoding is strict, but the library disagrees: %v", signature, err)
		}
		if again, err := sigkey.LowS(signature); err != nil || !bytes.Equal(again, signature) {
			t.Fatalf("%x: in other words %x, %v", signature, again, err)
		}
	})
}
