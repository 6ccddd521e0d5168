package evidence

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// TestLogEntry checks that an entry binds payload and signatures, and nothing that is added or taken away later.
func TestLogEntry(t *testing.T) {
	r := richRecord(t)
	entry := r.LogEntry()
	if form, err := Canonical(entry); err != nil || !bytes.Equal(form, entry) {
		t.Errorf("the entry %s is not canonical: %v", entry, err)
	}
	bare, err := OpenParts(r.Canonical(), r.Signatures, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(bare.LogEntry(), entry) {
		t.Error("the entry changes with time stamps, log proof, disclosures or certificates")
	}
	for i := range r.Signatures {
		other := slices.Clone(r.Signatures)
		other[i] = flipped(other[i], 0)
		changed, err := OpenParts(r.Canonical(), other, nil)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(changed.LogEntry(), entry) {
			t.Errorf("the entry does not bind signature %d", i)
		}
	}
}

// TestLogEntryTags checks that chain and case can be recognised in an entry, but not read from it.
func TestLogEntryTags(t *testing.T) {
	entry := func(doc string) string { return string(seal(t, doc, nil).LogEntry()) }
	plain := entry(testPayload)
	if strings.Contains(plain, `"chain"`) || strings.Contains(plain, `"case"`) {
		t.Errorf("an act outside any chain has the entry %s", plain)
	}
	required := strings.Fields(table[Submission].required)
	first := entry(document(Submission, required...))
	again := entry(strings.Replace(document(Submission, required...), sample["response"], `{}`, 1))
	chain := `"chain":"` + DigestOf([]byte("jurat/chain/v1\x00chain")).String() + `"`
	evidenceTag := `"case":"` + DigestOf([]byte("jurat/case/v1\x00"+someDigest)).String() + `"`
	for _, text := range []string{first, again} {
		if !strings.Contains(text, chain) || !strings.Contains(text, evidenceTag) {
			t.Errorf("entry %s lacks %s or %s", text, chain, evidenceTag)
		}
		if strings.Contains(text, someDigest) {
			t.Error("the entry tells the case")
		}
	}
	if first == again {
		t.Error("two acts have one entry")
	}
}
