package evidence

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"jurat/internal/test/must"
)

// TestLogEntry checks that an entry covers the payload and the signatures, but no part that can be added or removed
// later.
func TestLogEntry(t *testing.T) {
	r := richRecord(t)
	entry := r.LogEntry(LogCounts{ChainSeq: 3})
	form, err := Canonical(entry)
	must.Hold(t, err == nil && bytes.Equal(form, entry), "the entry %s is not canonical: %v", entry, err)
	subject := SubjectTag(RoleAgent, "a")
	for _, counts := range []LogCounts{{}, {ChainSeq: 4}, {ChainSeq: 3, CaseSeq: 1}, {ChainSeq: 3, ActorSeq: 1}, {ChainSeq: 3, ActorSeq: 1, Subject: subject, SubjectSeq: 1}} {
		must.Hold(t, !bytes.Equal(r.LogEntry(counts), entry), "the entry does not cover the counts %+v", counts)
	}
	bare := must.Get(OpenParts(r.Canonical(), r.Signatures, nil))(t)
	must.Hold(t, bytes.Equal(bare.LogEntry(LogCounts{ChainSeq: 3}), entry), "the entry changes with time stamps, log proof, disclosures or certificates")
	for i := range r.Signatures {
		other := slices.Clone(r.Signatures)
		other[i] = flipped(other[i], 0)
		changed := must.Get(OpenParts(r.Canonical(), other, nil))(t)
		must.Hold(t, !bytes.Equal(changed.LogEntry(LogCounts{ChainSeq: 3}), entry), "the entry does not cover signature %d", i)
	}
}

// TestLogEntryTags checks that a reader who knows a chain or case recognises it in an entry, but cannot read it from the
// entry.
func TestLogEntryTags(t *testing.T) {
	entry := func(doc string) string { return string(seal(t, doc, nil).LogEntry(LogCounts{ChainSeq: 3})) }
	plain := entry(testPayload)
	must.Hold(t, !strings.Contains(plain, `"chain"`) && !strings.Contains(plain, `"case"`), "an act outside any chain has the entry %s", plain)
	required := strings.Fields(table[Submission].required)
	first := entry(document(Submission, required...))
	again := entry(strings.Replace(document(Submission, required...), sample["response"], `{}`, 1))
	chain := `"chain":"` + DigestOf([]byte("jurat/chain/v1\x00chain")).String() + `"`
	evidenceTag := `"case":"` + DigestOf([]byte("jurat/case/v1\x00"+someDigest)).String() + `"`
	for _, text := range []string{first, again} {
		must.Hold(t, strings.Contains(text, chain) && strings.Contains(text, evidenceTag), "entry %s lacks %s or %s", text, chain, evidenceTag)
		must.Hold(t, !strings.Contains(text, someDigest), "the entry contains the case")
	}
	must.Hold(t, first != again, "two acts have the same entry")
}

// TestActorTags checks that an entry has the tag of its actor if and only if it has the actor's count, that a role is
// a part of the tag, and that the entry does not contain the name.
func TestActorTags(t *testing.T) {
	r := richRecord(t)
	name := r.Payload.Actor()
	want := DigestOf([]byte("jurat/subject/v1\x00agent:" + name))
	if got := ActorTag(RoleAgent, name); got != want || SubjectTag(RoleAgent, name) != got || ActorTag(RoleJuror, name) == got {
		t.Errorf("the tag of agent %q is %v, want %v, and another for each role", name, got, want)
	}
	old, e := r.LogEntry(LogCounts{ChainSeq: 3}), string(r.LogEntry(LogCounts{ActorSeq: 7, ChainSeq: 3}))
	if !strings.HasPrefix(e, `{"actor":"`+want.String()+`","actor_seq":7,`) || strings.Contains(e, `"`+name+`"`) || bytes.Contains(old, []byte("actor")) {
		t.Errorf("entries %s and %s", old, e)
	}
	subject := SubjectTag(RoleClerk, "b")
	e = string(r.LogEntry(LogCounts{ActorSeq: 7, ChainSeq: 3, Subject: subject, SubjectSeq: 2}))
	must.Hold(t, strings.HasSuffix(e, `],"subject":"`+subject.String()+`","subject_seq":2}`), "entry %s", e)
}

// TestCountsInFiles checks that a record's file carries all counts in canonical order, and is refused with one of them alone.
func TestCountsInFiles(t *testing.T) {
	r := seal(t, document(HumanReview, strings.Fields(table[HumanReview].required)...), nil)
	r.Log = &LogProof{ActorSeq: 5, Subject: SubjectTag(RoleAgent, "a"), SubjectSeq: 2, Index: 9, Proof: [][]byte{bytes.Repeat([]byte{1}, 32)}}
	file := must.Get(r.Marshal())(t)
	back, err := Open(file)
	must.Need(t, err == nil && back.Log.Counts() == r.Log.Counts() && back.Log.Index == 9, "%s: %+v, %v", file, back, err)
	for _, part := range []string{`"actor_seq":5,`, `"subject":"` + r.Log.Subject.String() + `",`, `,"subject_seq":2`} {
		cut := bytes.Replace(file, []byte(part), nil, 1)
		_, err := Open(cut)
		must.Hold(t, len(cut) != len(file) && err != nil && strings.Contains(err.Error(), "log: the counts are not those"), "without %s: %v", part, err)
	}
}

// TestLogCounts checks that the entry covers the log's counts, and that the counts must fit the record.
func TestLogCounts(t *testing.T) {
	r, tag := richRecord(t), SubjectTag(RoleAgent, "a")
	seen := map[string]bool{}
	for _, counts := range []LogCounts{{}, {ChainSeq: 1}, {ChainSeq: 2}, {CaseSeq: 1}, {CaseSeq: 1, ChainSeq: 1}, {ActorSeq: 1}, {ActorSeq: 2},
		{ActorSeq: 1, Subject: tag, SubjectSeq: 1}, {ActorSeq: 1, Subject: tag, SubjectSeq: 2}, {ActorSeq: 1, Subject: ActorTag(RoleAgent, "b"), SubjectSeq: 1}} {
		entry := r.LogEntry(counts)
		form, err := Canonical(entry)
		must.Hold(t, err == nil && bytes.Equal(form, entry), "the entry %s is not canonical: %v", entry, err)
		seen[string(entry)] = true
	}
	must.Equal(t, len(seen), 10)
	alone, step, submission := &Payload{ActionType: Message}, &Payload{ActionType: Message, ChainID: "c"}, &Payload{ActionType: Submission, ChainID: "c"}
	review, event, judgment := &Payload{ActionType: HumanReview}, &Payload{ActionType: KeyEvent}, &Payload{ActionType: FinalJudgment, ChainID: "c"}
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
		{LogCounts{ActorSeq: 1}, alone, true},
		{LogCounts{ActorSeq: maxExact}, alone, true},
		{LogCounts{ActorSeq: maxExact + 1}, alone, false},
		{LogCounts{ActorSeq: -1}, alone, false},
		{LogCounts{ActorSeq: 1, Subject: tag, SubjectSeq: 1}, alone, false},
		{LogCounts{ActorSeq: 1, Subject: tag, SubjectSeq: 1}, review, true},
		{LogCounts{ActorSeq: 1, Subject: tag, SubjectSeq: 1}, event, true},
		{LogCounts{ActorSeq: 1, ChainSeq: 1, Subject: tag, SubjectSeq: 1}, judgment, true},
		{LogCounts{ActorSeq: 1, ChainSeq: 1}, judgment, true},
		{LogCounts{ChainSeq: 1}, judgment, true},
		{LogCounts{ChainSeq: 1, Subject: tag, SubjectSeq: 1}, judgment, false},
		{LogCounts{ActorSeq: 1, ChainSeq: 1, Subject: tag}, judgment, false},
		{LogCounts{ActorSeq: 1, ChainSeq: 1, SubjectSeq: 1}, judgment, false},
		{LogCounts{ActorSeq: 1, ChainSeq: 1, Subject: tag, SubjectSeq: -1}, judgment, false},
		{LogCounts{ActorSeq: 1, ChainSeq: 1, Subject: tag, SubjectSeq: maxExact + 1}, judgment, false},
	} {
		must.Equal(t, test.counts.Fit(test.payload), test.want, test.counts, "fits", test.payload.ActionType, "in chain", test.payload.ChainID)
	}
}

func TestEntryRefused(t *testing.T) {
	r := richRecord(t)
	right := r.LogEntry(LogCounts{ChainSeq: 3})
	e, err := ParseEntry(right)
	must.Need(t, err == nil && e.Payload == r.Digest && e.Chain == ChainTag(r.Payload.ChainID), "%s: %+v, %v", right, e, err)
	digest := DigestOf(nil).String()
	for name, doc := range map[string]string{
		"nothing":                    "",
		"no object":                  "[]",
		"no payload":                 `{"signatures":["AA=="]}`,
		"a payload of nothing":       `{"payload":"` + Digest{}.String() + `","signatures":["AA=="]}`,
		"a signature too long":       `{"payload":"` + digest + `","signatures":["` + base64.StdEncoding.EncodeToString(make([]byte, maxSignature+1)) + `"]}`,
		"no signature":               `{"payload":"` + digest + `","signatures":[]}`,
		"an empty signature":         `{"payload":"` + digest + `","signatures":[""]}`,
		"17 signatures":              `{"payload":"` + digest + `","signatures":["AA=="` + strings.Repeat(`,"AA=="`, 16) + `]}`,
		"a count without a chain":    `{"chain_seq":1,"payload":"` + digest + `","signatures":["AA=="]}`,
		"a chain without a count":    `{"chain":"` + digest + `","payload":"` + digest + `","signatures":["AA=="]}`,
		"a submission of no case":    `{"case_seq":1,"payload":"` + digest + `","signatures":["AA=="]}`,
		"a negative count":           `{"case":"` + digest + `","case_seq":-1,"payload":"` + digest + `","signatures":["AA=="]}`,
		"a count that is not exact":  `{"chain":"` + digest + `","chain_seq":9007199254740992,"payload":"` + digest + `","signatures":["AA=="]}`,
		"an actor without a count":   `{"actor":"` + digest + `","payload":"` + digest + `","signatures":["AA=="]}`,
		"a count without an actor":   `{"actor_seq":1,"payload":"` + digest + `","signatures":["AA=="]}`,
		"a subject without an actor": `{"payload":"` + digest + `","signatures":["AA=="],"subject":"` + digest + `","subject_seq":1}`,
		"a subject without a count":  `{"actor":"` + digest + `","actor_seq":1,"payload":"` + digest + `","signatures":["AA=="],"subject":"` + digest + `"}`,
		"a count without a subject":  `{"actor":"` + digest + `","actor_seq":1,"payload":"` + digest + `","signatures":["AA=="],"subject_seq":1}`,
		"a subject's negative count": `{"actor":"` + digest + `","actor_seq":1,"payload":"` + digest + `","signatures":["AA=="],"subject":"` + digest + `","subject_seq":-1}`,
		"an actor's count too large": `{"actor":"` + digest + `","actor_seq":9007199254740992,"payload":"` + digest + `","signatures":["AA=="]}`,
		"the subject in front":       `{"actor":"` + digest + `","actor_seq":1,"payload":"` + digest + `","subject":"` + digest + `","subject_seq":1,"signatures":["AA=="]}`,
		"loose base64":               `{"payload":"` + digest + `","signatures":["AB=="]}`,
		"a member more":              `{"more":1,"payload":"` + digest + `","signatures":["AA=="]}`,
		"another order":              `{"signatures":["AA=="],"payload":"` + digest + `"}`,
		"a space":                    `{"payload":"` + digest + `", "signatures":["AA=="]}`,
		"an escape that is not used": `{"p\u0061yload":"` + digest + `","signatures":["AA=="]}`,
		"something behind":           string(right) + " ",
		"too long":                   strings.Repeat(" ", MaxEntry+1),
	} {
		e, err := ParseEntry([]byte(doc))
		must.Hold(t, err != nil && e == nil, "%s: %+v, %v", name, e, err)
	}
}

// FuzzParseEntry: an entry that parses marshals back to the same bytes.
func FuzzParseEntry(f *testing.F) {
	f.Add(richRecord(f).LogEntry(LogCounts{ChainSeq: 3}))
	f.Add([]byte(`{"payload":"` + DigestOf(nil).String() + `","signatures":["AA=="]}`))
	full := Entry{Actor: ActorTag(RoleClerk, "c"), ActorSeq: 3, Subject: SubjectTag(RoleAgent, "s"), SubjectSeq: 1 << 50, Case: CaseTag(DigestOf(nil)), CaseSeq: 17, Chain: ChainTag("c"), ChainSeq: 1 << 40, Payload: DigestOf(nil), Signatures: [][]byte{{1}, {2, 3}, {4, 5, 6}}}
	f.Add([]byte(marshal(full)))
	f.Fuzz(func(t *testing.T, doc []byte) {
		e, err := ParseEntry(doc)
		if err != nil {
			return
		}
		again := marshal(e)
		must.Need(t, bytes.Equal(again, doc), "%q parses and marshals to %q", doc, again)
	})
}

func TestDigestHasOneForm(t *testing.T) {
	d := DigestOf(nil)
	const empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	must.Equal(t, d.String(), empty)
	must.Give(ParseDigest(empty))(t, d, "parsed to")
	digits := hex.EncodeToString(d[:])
	for _, text := range []string{"", digits, "sha256:", "SHA256:" + digits, strings.ToUpper(empty), "sha256:" + strings.ToUpper(digits),
		empty + "0", empty[:len(empty)-1], " " + empty, empty + "\n", "sha512:" + digits, "sha256:0x" + digits[2:], "sha256-" + digits,
		"sha256:" + strings.Repeat("g", 64), "sha256:" + strings.Repeat("١", 32)} {
		must.Refuse(t, "", text)(ParseDigest(text))
	}
}

func TestRecordID(t *testing.T) {
	id, err := NewRecordID(testTime, new(counter))
	must.Hold(t, err == nil && id == "019c14d6-13a0-7607-8809-0a0b0c0d0e0f", "id is %s, %v", id, err)
	for i, last := 0, ""; i < 1000; i++ {
		id, err := NewRecordID(testTime.Add(time.Duration(i)*time.Millisecond), nil)
		must.Need(t, err == nil && CheckRecordID(id) == nil && id > last, "%s after %s: %v", id, last, err)
		last = id
	}
	for _, never := range []time.Time{{}, time.UnixMilli(-1), time.UnixMilli(1 << 48)} {
		id, err := NewRecordID(never, nil)
		must.Hold(t, err != nil, "%s: id is %s", never, id)
	}
	must.Fail(t, io.ErrUnexpectedEOF)(NewRecordID(testTime, strings.NewReader("short")))
}
