package evidence

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jurat/internal/jsonform"
	"jurat/internal/must"
)

// TestDroppedMembers removes every member of the record's own form. Only parts that may be withheld may be missing.
func TestDroppedMembers(t *testing.T) {
	r := richRecord(t)
	var whole any
	must.Do(t, json.Unmarshal(marshalRecord(t, r), &whole))
	var opens []string
	for _, pointer := range memberPointers(whole, "") {
		if strings.HasPrefix(pointer, "/disclosures/") && strings.Contains(pointer, "/value/") {
			continue // the value's own members: a changed value, which TestFlippedRecord covers
		}
		opened, err := Open(dropped(t, whole, pointer))
		if err != nil {
			continue
		}
		opens = append(opens, pointer)
		if err := check(t, opened); err != nil {
			t.Errorf("without %s: %v", pointer, err)
		}
	}
	slices.Sort(opens)
	want := []string{"/certificates", "/disclosures", "/log", "/log/checkpoint"}
	if diff := cmp.Diff(want, opens); diff != "" {
		t.Errorf("what may be missing (-want +got):\n%s", diff)
	}
}

// memberPointers lists every object member under a value.
func memberPointers(value any, at string) []string {
	var pointers []string
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			pointer := at + "/" + escape.Replace(name)
			pointers = append(append(pointers, pointer), memberPointers(inner, pointer)...)
		}
	case []any:
		for i, inner := range v {
			pointers = append(pointers, memberPointers(inner, fmt.Sprint(at, "/", i))...)
		}
	}
	return pointers
}

// dropped returns the file without the member at the pointer, still canonical.
func dropped(t *testing.T, whole any, pointer string) []byte {
	t.Helper()
	doc := must.Get(json.Marshal(dropAt(whole, "", pointer)))(t)
	form := must.Get(Canonical(doc))(t)
	return append(form, '\n')
}

func dropAt(value any, at, drop string) any {
	switch v := value.(type) {
	case map[string]any:
		kept := maps.Clone(v)
		for name, inner := range v {
			pointer := at + "/" + escape.Replace(name)
			kept[name] = dropAt(inner, pointer, drop)
			if pointer == drop {
				delete(kept, name)
			}
		}
		return kept
	case []any:
		kept := slices.Clone(v)
		for i, inner := range v {
			kept[i] = dropAt(inner, fmt.Sprint(at, "/", i), drop)
		}
		return kept
	}
	return value
}

// TestSecondForms writes the same record in other forms. Open must refuse each of them.
func TestSecondForms(t *testing.T) {
	file := string(marshalRecord(t, richRecord(t)))
	for name, other := range map[string]string{
		"no line feed":           strings.TrimSuffix(file, "\n"),
		"two line feeds":         file + "\n",
		"carriage return":        strings.TrimSuffix(file, "\n") + "\r\n",
		"BOM":                    "\ufeff" + file,
		"space":                  strings.Replace(file, `"digest":`, `"digest": `, 1),
		"space in the payload":   strings.Replace(file, `"agent_id":`, `"agent_id": `, 1),
		"null certificates":      strings.Replace(file, `"certificates":["YSBjZXJ0aWZpY2F0ZQ=="]`, `"certificates":null`, 1),
		"empty certificates":     strings.Replace(file, `"certificates":["YSBjZXJ0aWZpY2F0ZQ=="]`, `"certificates":[]`, 1),
		"empty certificate":      strings.Replace(file, `"certificates":["YSBjZXJ0aWZpY2F0ZQ=="]`, `"certificates":[""]`, 1),
		"kind after the token":   strings.Replace(file, `{"kind":"rfc3161","token":"b25lIHRva2Vu"}`, `{"token":"b25lIHRva2Vu","kind":"rfc3161"}`, 1),
		"loose bits in base64":   strings.Replace(file, "YSBjZXJ0aWZpY2F0ZQ==", "YSBjZXJ0aWZpY2F0ZR==", 1),
		"base64 without padding": strings.Replace(file, "YSBjZXJ0aWZpY2F0ZQ==", "YSBjZXJ0aWZpY2F0ZQ", 1),
		"line feed in base64":    strings.Replace(file, "YSBjZXJ0aWZpY2F0ZQ==", `YSBj\nZXJ0aWZpY2F0ZQ==`, 1),
		"escape in base64":       strings.Replace(file, "YSBjZXJ0aWZpY2F0ZQ==", `\u0059SBjZXJ0aWZpY2F0ZQ==`, 1),
		"digest in upper case":   strings.Replace(file, `"digest":"sha256:`, `"digest":"SHA256:`, 1),
		"index with fraction":    strings.Replace(file, `"index":7`, `"index":7.0`, 1),
		"index with exponent":    strings.Replace(file, `"index":7`, `"index":7e0`, 1),
		"index in quotes":        strings.Replace(file, `"index":7`, `"index":"7"`, 1),
		"index below zero":       strings.Replace(file, `"index":7`, `"index":-7`, 1),
		"index beyond doubles":   strings.Replace(file, `"index":7`, `"index":9007199254740993`, 1),
		"empty checkpoint":       strings.Replace(file, `"index":7`, `"checkpoint":"","index":7`, 1),
		"checkpoint twice":       strings.Replace(file, `"index":7`, `"checkpoint":"x","index":7`, 1),
		"unknown member":         strings.Replace(file, `"digest":`, `"dig":1,"digest":`, 1),
		"unknown member at last": strings.TrimSuffix(file, "}\n") + `,"x":1}` + "\n",
		"name in another case":   strings.Replace(file, `"timestamps":`, `"Timestamps":`, 1),
		"null log":               strings.Replace(strings.Replace(file, `"log":{`, `"log":null,"x":{`, 1), `"x":{`, `"log":{`, 1),
		"payload as a string":    strings.Replace(file, `"payload":{`, `"payload":"x","payloa":{`, 1),
	} {
		if other == file {
			t.Errorf("%s: the change does not apply to the file", name)
		}
		if _, err := Open([]byte(other)); err == nil {
			t.Errorf("%s: it opens", name)
		}
	}
}

// TestParts breaks each rule about the parts around the payload. Open must refuse the file, and Marshal must refuse the
// record.
func TestParts(t *testing.T) {
	for name, test := range map[string]struct {
		damage func(*Record)
		want   string
	}{
		"signature missing":         {func(r *Record) { r.Signatures = r.Signatures[:2] }, "names 3 signers, the record has 2"},
		"signatures all gone":       {func(r *Record) { r.Signatures = nil }, "names 3 signers, the record has 0"},
		"signature too many":        {func(r *Record) { r.Signatures = append(r.Signatures, []byte{1}) }, "names 3 signers, the record has 4"},
		"signature empty":           {func(r *Record) { r.Signatures = [][]byte{{1}, {}, {1}} }, "signature 1 has 0 bytes"},
		"signature too long":        {func(r *Record) { r.Signatures[2] = make([]byte, maxSignature+1) }, "signature 2 has 8193 bytes"},
		"digest":                    {func(r *Record) { r.Digest[0] ^= 1 }, "digest: the payload's is"},
		"kind of time stamp":        {func(r *Record) { r.Timestamps[1].Kind = "rfc5544" }, `timestamp 1: unknown kind "rfc5544": expected rfc3161`},
		"token empty":               {func(r *Record) { r.Timestamps[0].Token = nil }, "timestamp 0: token of 0 bytes"},
		"token too long":            {func(r *Record) { r.Timestamps[0].Token = make([]byte, MaxToken+1) }, "timestamp 0: token of 65537 bytes"},
		"anchor without checkpoint": {func(r *Record) { r.Log.Checkpoint, r.Log.Anchors = "", []Anchor{anchorBy(1)} }, "stamped checkpoints, but no checkpoint"},
		"anchor without its own":    {func(r *Record) { r.Log.Anchors = []Anchor{{Timestamps: anchorBy(1).Timestamps}} }, "anchors: 0: the checkpoint or its time stamps are missing"},
		"anchor without stamps":     {func(r *Record) { r.Log.Anchors = []Anchor{{Checkpoint: "c"}} }, "its time stamps are missing"},
		"an empty generation":       {func(r *Record) { r.Log.Anchors = []Anchor{{Checkpoint: "c", Timestamps: [][][]byte{{{1}}, {}}}} }, "a generation without a token"},
		"a token twice":             {func(r *Record) { r.Log.Anchors = []Anchor{{Checkpoint: "c", Timestamps: [][][]byte{{{1}}, {{1}}}}} }, "the same token twice"},
		"a short node":              {func(r *Record) { a := anchorBy(1); a.Consistency = [][]byte{{1}}; r.Log.Anchors = []Anchor{a} }, "consistency: want at most"},
		"too many nodes": {func(r *Record) {
			a := anchorBy(1)
			a.Consistency = slices.Repeat([][]byte{make([]byte, 32)}, 65)
			r.Log.Anchors = []Anchor{a}
		}, "consistency: want at most"},
		"too many anchor tokens": {func(r *Record) { r.Log.Anchors = []Anchor{anchorBy(MaxAnchorTokens), anchorBy(1)} }, "anchors: 1025 tokens"},
		"too long anchors": {func(r *Record) {
			r.Log.Anchors = []Anchor{{Checkpoint: strings.Repeat("c", MaxAnchorBytes), Timestamps: anchorBy(1).Timestamps}}
		}, "want at most 1024 and 8388608"},
		"index":                 {func(r *Record) { r.Log.Index = -1 }, "log: index or proof out of range"},
		"counts":                {func(r *Record) { r.Log.ChainSeq = 0 }, "log: the counts are not those"},
		"index too great":       {func(r *Record) { r.Log.Index = 1 << 53 }, "log: index or proof out of range"},
		"no count":              {func(r *Record) { r.Log.ChainSeq = 0 }, "log: the counts are not those"},
		"a count of cases":      {func(r *Record) { r.Log.CaseSeq = 1 }, "log: the counts are not those"},
		"proof too long":        {func(r *Record) { r.Log.Proof = make([][]byte, 64) }, "log: index or proof out of range"},
		"node too short":        {func(r *Record) { r.Log.Proof[1] = make([]byte, 31) }, "log: proof node 1 has 31 bytes"},
		"salt too short":        {func(r *Record) { r.Disclosures[0].Salt = make([]byte, 31) }, "a salt does not have 32 bytes"},
		"disclosures unordered": {func(r *Record) { slices.Reverse(r.Disclosures) }, "not sorted by pointer"},
		"disclosure twice":      {func(r *Record) { r.Disclosures[1] = r.Disclosures[0] }, "not sorted by pointer"},
		"disclosure of nothing": {func(r *Record) { r.Disclosures[3].Pointer = "/zzz" }, `"/zzz" is not sealed apart`},
		"certificate empty":     {func(r *Record) { r.Certificates[0] = nil }, "certificate 0 has 0 bytes"},
		"certificate too long":  {func(r *Record) { r.Certificates[0] = make([]byte, maxCertificate+1) }, "certificate 0 has 65537 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			r := richRecord(t)
			test.damage(r)
			form := recordForm{Payload: r.canonical, Digest: r.Digest, Signatures: r.Signatures, Timestamps: r.Timestamps, Log: r.Log.form(),
				Disclosures: r.Disclosures, Certificates: r.Certificates}
			file := must.Get(jsonform.Encode(&form))(t)
			if _, err := Open(append(file, '\n')); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("opening: error is %v, want … %s …", err, test.want)
			}
			if _, err := r.Marshal(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("marshalling: error is %v, want … %s …", err, test.want)
			}
		})
	}
	if _, err := new(Record).Marshal(); err == nil {
		t.Error("Marshal wrote an empty record")
	}
}

// anchorBy is an anchor of so many tokens.
func anchorBy(tokens int) Anchor {
	a := Anchor{Checkpoint: "c", Timestamps: [][][]byte{{}}}
	for n := range tokens {
		a.Timestamps[0] = append(a.Timestamps[0], []byte{byte(n), byte(n >> 8)})
	}
	return a
}
