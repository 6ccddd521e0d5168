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
	entry := r.LogEntry(LogCounts{ChainSeq: 3})
	if form, err := Canonical(entry); err != nil || !bytes.Equal(form, entry) {
		t.Errorf("the entry %s is not canonical: %v", entry, err)
	}
	for _, counts := range []LogCounts{{}, {ChainSeq: 4}, {ChainSeq: 3, CaseSeq: 1}} {
		if bytes.Equal(r.LogEntry(counts), entry) {
			t.Errorf("the entry does not bind the counts %+v", counts)
		}
	}
	bare, err := OpenParts(r.Canonical(), r.Signatures, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(bare.LogEntry(LogCounts{ChainSeq: 3}), entry) {
		t.Error("the entry changes with time stamps, log proof, disclosures or certificates")
	}
	for i := range r.Signatures {
		other := slices.Clone(r.Signatures)
		other[i] = flipped(other[i], 0)
		changed, err := OpenParts(r.Canonical(), other, nil)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(changed.LogEntry(LogCounts{ChainSeq: 3}), entry) {
			t.Errorf("the entry does not bind signature %d", i)
		}
	}
}

// TestLogEntryTags checks that chain and case can be recognised in an entry, but not read from it.
func TestLogEntryTags(t *testing.T) {
	entry := func(doc string) string { return string(seal(t, doc, nil).LogEntry(LogCounts{ChainSeq: 3})) }
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

// TestLogCounts checks that the entry binds what the log counted, and that counts must fit the record.
func TestLogCounts(t *testing.T) {
	r := richRecord(t)
	seen := map[string]bool{}
	for _, counts := range []LogCounts{{}, {ChainSeq: 1}, {ChainSeq: 2}, {CaseSeq: 1}, {CaseSeq: 1, ChainSeq: 1}} {
		entry := r.LogEntry(counts)
		if form, err := Canonical(entry); err != nil || !bytes.Equal(form, entry) {
			t.Errorf("the entry %s is not canonical: %v", entry, err)
		}
		seen[string(entry)] = true
	}
	if len(seen) != 5 {
		t.Error("two counts have one entry")
	}
	alone, step, submission := &Payload{ActionType: Message}, &Payload{ActionType: Message, ChainID: "c"}, &Payload{ActionType: Submission, ChainID: "c"}
	for _, test := range []struct {
		counts  LogCounts
		payload *Payload
		want    bool
	}{
		{LogCounts{}, alone, true},
		{LogCounts{ChainSeq: 1}, alone, false},
		{LogCounts{CaseSeq: 1}, alone, false},
		{LogCounts{ChainSeq: 1}, step, true},
		{LogCounts{ChainSeq: maxExact}, step, true},
		{LogCounts{ChainSeq: maxExact + 1}, step, false},
		{LogCounts{}, step, false},
		{LogCounts{ChainSeq: -1}, step, false},
		{LogCounts{ChainSeq: 1, CaseSeq: 1}, step, false},
		{LogCounts{ChainSeq: 1, CaseSeq: 1}, submission, true},
		{LogCounts{ChainSeq: 1}, submission, false},
		{LogCounts{ChainSeq: 1, CaseSeq: -1}, submission, false},
		{LogCounts{CaseSeq: 1}, submission, false},
	} {
		if got := test.counts.Fit(test.payload); got != test.want {
			t.Errorf("%+v fits %s in chain %q: %t", test.counts, test.payload.ActionType, test.payload.ChainID, got)
		}
	}
}
