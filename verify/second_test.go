package verify_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/jury"
	"jurat/verify"
	"jurat/verify/trust"
)

// signedTwice returns a house whose actors also sign with ML-DSA-65.
func signedTwice(t *testing.T) *jurattest.House {
	t.Helper()
	h := jurattest.New(t)
	h.Keys.PostQuantum = true
	return h
}

// sealBy seals output("a") with the given signers, and returns the record with its log proof.
func sealBy(t *testing.T, h *jurattest.House, signers ...evidence.Signer) *evidence.Record {
	t.Helper()
	draft := must.Get(evidence.NewDraft(output("a")))(t)
	r := must.Get(h.Ledger.Seal(t.Context(), draft, signers))(t)
	r = must.Get(h.Ledger.ProveOne(t.Context(), r))(t)
	return r
}

func signersOf(t *testing.T, h *jurattest.House, name string) []evidence.Signer {
	t.Helper()
	return must.Get(h.Keys.Signers(t.Context(), evidence.RoleAgent, name))(t)
}

func TestTrialSignedTwice(t *testing.T) {
	h := signedTwice(t)
	b := h.Bundle(t, h.Try(t, jury.FinalJudge).Records...)
	file := must.Get(b.Marshal())(t)
	r := check(t, file, h.Options(t))
	must.Hold(t, r.Outcome == verify.Proved, "%s: %+v", r.Outcome, r.Details)
	again := must.Get(evidence.ParseBundle(file))(t)
	doc, err := again.Marshal()
	must.Hold(t, err == nil && bytes.Equal(doc, file), "marshals to other bytes: %v", err)
	for _, r := range b.Records {
		s := r.Payload.Signers
		must.Hold(t, len(s) == 2 && s[0].Algorithm == evidence.ES256 && s[1].Algorithm == evidence.MLDSA65, "%s is signed by %v", r.Payload.ActionType, s)
	}
}

// TestSecondSignature breaks one thing at a time about the second signature. The attacker holds the first key.
func TestSecondSignature(t *testing.T) {
	type answer struct {
		guarantee verify.Guarantee
		status    verify.Status
		rule      string
		says      string
	}
	both := func(a, b answer) []answer { return []answer{a, b} }
	tests := []struct {
		name   string
		sealed func(h *jurattest.House) *evidence.Record
		want   []answer
	}{
		{"as it should be", func(h *jurattest.House) *evidence.Record {
			return sealBy(t, h, signersOf(t, h, "a")...)
		}, both(answer{verify.Content, verify.Proved, "", "every signature"}, answer{verify.Authentication, verify.Proved, "", "every signature"})},
		{"in the other order", func(h *jurattest.House) *evidence.Record {
			s := signersOf(t, h, "a")
			return sealBy(t, h, s[1], s[0])
		}, both(answer{verify.Content, verify.Proved, "", "every signature"}, answer{verify.Authentication, verify.Proved, "", "every signature"})},
		{"damaged", func(h *jurattest.House) *evidence.Record {
			r := sealBy(t, h, signersOf(t, h, "a")...)
			r.Signatures[1][1000] ^= 1
			return r
		}, both(answer{verify.Content, verify.Refuted, "signature", "signature 1"}, answer{verify.Authentication, verify.Refuted, "signature", "signature 1"})},
		{"over another payload", func(h *jurattest.House) *evidence.Record {
			r, other := sealBy(t, h, signersOf(t, h, "a")...), sealBy(t, h, signersOf(t, h, "a")...)
			r.Signatures[1] = other.Signatures[1]
			return r
		}, both(answer{verify.Content, verify.Refuted, "signature", "signature 1"}, answer{verify.Time, verify.Refuted, "token", "time stamp 0"})},
		{"sealed again without it", func(h *jurattest.House) *evidence.Record {
			return sealBy(t, h, signersOf(t, h, "a")[0])
		}, both(answer{verify.Content, verify.Proved, "", "every signature"},
			answer{verify.Authentication, verify.Refuted, "second-signature", `agent "a" signs only together with the key sha256:`})},
		{"sealed again without the first", func(h *jurattest.House) *evidence.Record {
			return sealBy(t, h, signersOf(t, h, "a")[1])
		}, both(answer{verify.Authentication, verify.Refuted, "second-signature", "which did not sign"},
			answer{verify.NonRepudiation, verify.Refuted, "second-signature", "which did not sign"})},
		{"by a key that nobody knows", func(h *jurattest.House) *evidence.Record {
			stranger := must.Get(evidence.NewSigner(evidence.NewMLDSA65(new([32]byte)), nil))(t)
			return sealBy(t, h, signersOf(t, h, "a")[0], stranger)
		}, both(answer{verify.Content, verify.NotProved, "unknown-key", "other keys for agent"},
			answer{verify.Authentication, verify.Refuted, "second-signature", "which did not sign"})},
		{"by another actor's key", func(h *jurattest.House) *evidence.Record {
			return sealBy(t, h, signersOf(t, h, "a")[0], signersOf(t, h, "b")[1])
		}, both(answer{verify.Content, verify.Proved, "", "every signature"},
			answer{verify.Authentication, verify.Refuted, "second-signature", "which did not sign"})},
		{"by another actor's key beside it", func(h *jurattest.House) *evidence.Record {
			return sealBy(t, h, append(signersOf(t, h, "a"), signersOf(t, h, "b")...)...)
		}, both(answer{verify.Content, verify.Proved, "", "every signature"},
			answer{verify.Authentication, verify.Refuted, "actor", `the key of agent "b"`})},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := signedTwice(t)
			signersOf(t, h, "a") // so that the trust file has both actors' keys
			signersOf(t, h, "b")
			report := verify.Record(tt.sealed(h), h.Options(t))
			for _, want := range tt.want {
				got := report.Of(want.guarantee)
				must.Hold(t, got.Status == want.status && got.Rule == want.rule && strings.Contains(got.Reason, want.says),
					"%+v; want %s by rule %q, saying %q", got, want.status, want.rule, want.says)
			}
			must.Equal(t, tt.want[1].status == verify.Refuted, report.Outcome == verify.Refuted, "outcome", report.Outcome)
		})
	}
}

// TestSecondSignatureStripped removes the second signature from the file, and its name from the payload.
func TestSecondSignatureStripped(t *testing.T) {
	h := signedTwice(t)
	r := sealBy(t, h, signersOf(t, h, "a")...)
	file := must.Get(r.Marshal())(t)
	o := h.Options(t)
	report := check(t, file, o)
	must.Need(t, report.Outcome == verify.Proved, "the honest file: %+v", report.Details)
	second := `,"` + base64.StdEncoding.EncodeToString(r.Signatures[1]) + `"`
	stripped := strings.Replace(string(file), second, "", 1)
	got := check(t, []byte(stripped), o).Of(verify.Content)
	must.Hold(t, got.Status == verify.Refuted && got.Rule == "form" && strings.Contains(got.Reason, "names 2 signers, the record has 1 signatures"),
		"without the signature: %+v", got)
	name := `,{"alg":"ML-DSA-65","key_id":"` + r.Payload.Signers[1].KeyID.String() + `"}`
	unnamed := strings.Replace(stripped, name, "", 1)
	must.Need(t, unnamed != stripped, "the payload does not contain the second signer in this form")
	if got := check(t, []byte(unnamed), o).Of(verify.Content); got.Status != verify.Refuted || got.Rule != "form" || !strings.Contains(got.Reason, "digest") {
		t.Errorf("without the signer's name in the payload: %+v", got)
	}
	// With a recomputed digest the file opens, but the first signature is over another payload.
	payload := strings.Replace(string(r.Canonical()), name, "", 1)
	fitting := strings.Replace(unnamed, r.Digest.String(), evidence.DigestOf([]byte(payload)).String(), 1)
	got = check(t, []byte(fitting), o).Of(verify.Content)
	must.Hold(t, got.Status == verify.Refuted && got.Rule == "signature", "with another digest: %+v", got)
}

// TestSecondSignatureFrom: before the second key existed, the first one signed alone.
func TestSecondSignatureFrom(t *testing.T) {
	stamped := jurattest.Start
	tests := []struct {
		name   string
		from   time.Time
		timed  bool
		status verify.Status
		rule   string
	}{
		{"always", time.Time{}, true, verify.Refuted, "second-signature"},
		{"always, and no proved time", time.Time{}, false, verify.Refuted, "second-signature"},
		{"from before", stamped.Add(-time.Second), true, verify.Refuted, "second-signature"},
		{"from the very moment", stamped, true, verify.Refuted, "second-signature"},
		{"from later", stamped.Add(time.Second), true, verify.Proved, "operator-clock"},
		{"from later, and no proved time", stamped.Add(time.Second), false, verify.NotProved, "second-signature"},
	}
	for _, tt := range tests {
		h := signedTwice(t)
		r := sealBy(t, h, signersOf(t, h, "a")[0])
		if !tt.timed {
			r.Timestamps = nil
		}
		o := h.Options(t)
		o.Trust.Key(r.Payload.Signers[0].KeyID).WithFrom = tt.from
		report := verify.Record(r, o)
		for _, g := range []verify.Guarantee{verify.Authentication, verify.NonRepudiation} {
			got := report.Of(g)
			if g == verify.NonRepudiation && tt.status == verify.Proved && got.Rule == "custody" { // the operator keeps the key
				continue
			}
			must.Hold(t, got.Status == tt.status && got.Rule == tt.rule, "%s: %+v; want %s", tt.name, got, tt.status)
		}
	}
}

// TestTrustFileDemandsOnlyWhatCanBe reads trust files with demands that no record can fulfil.
func TestTrustFileDemandsOnlyWhatCanBe(t *testing.T) {
	h := signedTwice(t)
	a, b := signersOf(t, h, "a"), signersOf(t, h, "b")
	doc := func(change func(k *trust.Key)) []byte {
		trusted := h.Trust(t)
		change(trusted.Key(a[0].Info().KeyID))
		return must.Get(trusted.Marshal())(t)
	}
	own, second, foreign := a[0].Info().KeyID, a[1].Info().KeyID, b[1].Info().KeyID
	changed := func(old, new string) []byte {
		return bytes.Replace(doc(func(*trust.Key) {}), []byte(old), []byte(new), 1)
	}
	text := doc(func(*trust.Key) {})
	start := bytes.Index(text, []byte(`"with": [`)) + len(`"with": [`)
	emptied := slices.Delete(text, start, start+bytes.IndexByte(text[start:], ']'))
	for name, tt := range map[string]struct {
		doc  []byte
		says string
	}{
		"empty":                  {emptied, "with is empty"},
		"itself":                 {doc(func(k *trust.Key) { k.With = []evidence.KeyID{own} }), "this key itself"},
		"twice":                  {doc(func(k *trust.Key) { k.With = []evidence.KeyID{second, second} }), "twice"},
		"unknown":                {doc(func(k *trust.Key) { k.With = []evidence.KeyID{evidence.DigestOf(nil)} }), "has no key"},
		"another actor's":        {doc(func(k *trust.Key) { k.With = []evidence.KeyID{foreign} }), `that of agent "b"`},
		"a time without a key":   {doc(func(k *trust.Key) { k.With, k.WithFrom = nil, jurattest.Start }), "with_from"},
		"a time that is no time": {changed(`"with": [`, `"with_from": "soon", "with": [`), "with_from"},
	} {
		must.Refuse(t, tt.says, name)(trust.Parse(tt.doc))
	}
	whole := doc(func(k *trust.Key) { k.WithFrom = jurattest.Start })
	trusted := must.Get(trust.Parse(whole))(t)
	again, err := trusted.Marshal()
	must.Hold(t, err == nil && bytes.Equal(again, whole), "marshals to other bytes: %v", err)
}

// A taking takes a part out of a file that nothing signed holds there. Anybody who has the file can do it.
type taking struct {
	kind  string // of part: the member that has it
	place string
	with  any // what is left there; nil: nothing
}

// removable are members of a record or bundle that are not signed, or signed each by itself.
var removable = map[string]bool{"timestamps": true, "anchors": true, "disclosures": true, "certificates": true, "properties": true, "signatures": true}

// takings lists the parts of a file in JSON.
func takings(t *testing.T, node map[string]any, place string) (list []taking) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(node)) {
		at := place + "/" + name
		switch value := node[name].(type) {
		case []any:
			for i, one := range value {
				element := fmt.Sprint(at, "/", i)
				if removable[name] || name == "records" {
					list = append(list, taking{name, element, nil})
				}
				if within, is := one.(map[string]any); is {
					if generations, is := within["timestamps"].([]any); is && name == "anchors" && len(generations) > 1 {
						list = append(list, taking{"renewal", fmt.Sprint(element, "/timestamps/", len(generations)-1), nil})
					}
					if name == "records" {
						list = append(list, takings(t, within, element)...)
					}
					if token, is := within["token"].(string); is {
						for _, less := range unstamped(t, token) {
							list = append(list, taking{less.kind, element + "/token", less.with})
						}
					}
				}
			}
		case map[string]any:
			if name == "log" {
				list = append(append(list, taking{name, at, nil}), takings(t, value, at)...)
			}
		case string:
			if name == "checkpoint" {
				list = append(list, taking{name, at, nil})
				for _, less := range unsigned(value) {
					list = append(list, taking{"signature line", at, less})
				}
			}
		}
	}
	return list
}

// unsigned lists the checkpoints that lack one signature of this one.
func unsigned(note string) (list []string) {
	text, signatures, _ := strings.Cut(note, "\n\n")
	lines := strings.SplitAfter(signatures, "\n")
	for i := range lines {
		if lines[i] != "" {
			list = append(list, text+"\n\n"+strings.Join(slices.Delete(slices.Clone(lines), i, i+1), ""))
		}
	}
	return list
}

// unstamped lists the tokens that lack one part which the authority did not sign.
func unstamped(t *testing.T, encoded string) (list []taking) {
	t.Helper()
	der, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil
	}
	for field, kind := range map[byte]string{0xA0: "certificate of a token", 0xA1: "list of a token"} {
		for i := 0; ; i++ {
			token, err := parseDER(der)
			if err != nil || len(token.Members) < 2 || len(token.Members[1].Members) != 1 {
				return nil // no token
			}
			data := token.Members[1].Members[0]
			at := slices.IndexFunc(data.Members, func(n *derNode) bool { return n.Tag == field })
			if at < 0 || i >= len(data.Members[at].Members) {
				break
			}
			if set := data.Members[at]; len(set.Members) == 1 {
				data.Members = slices.Delete(data.Members, at, at+1)
			} else {
				set.Members = slices.Delete(set.Members, i, i+1)
			}
			list = append(list, taking{kind, "", base64.StdEncoding.EncodeToString(token.Bytes())})
		}
	}
	return list
}

// less returns the file without these parts.
func less(t *testing.T, file []byte, taken ...taking) []byte {
	t.Helper()
	root := treeOf(file)
	slices.SortFunc(taken, func(a, b taking) int { return -comparePlaces(a.place, b.place) }) // later elements first
	for _, part := range taken {
		root = without(root, strings.Split(part.place, "/")[1:], part.with)
	}
	var doc bytes.Buffer
	e := json.NewEncoder(&doc)
	e.SetEscapeHTML(false)
	must.Do(t, e.Encode(root))
	return doc.Bytes()
}

func comparePlaces(a, b string) int {
	one, other := strings.Split(a, "/"), strings.Split(b, "/")
	for i := range min(len(one), len(other)) {
		if one[i] != other[i] {
			if len(one[i]) != len(other[i]) {
				return len(one[i]) - len(other[i])
			}
			return strings.Compare(one[i], other[i])
		}
	}
	return len(one) - len(other)
}

func without(node any, path []string, with any) any {
	name := path[0]
	switch node := node.(type) {
	case map[string]any:
		if len(path) > 1 {
			node[name] = without(node[name], path[1:], with)
		} else if node[name] = with; with == nil {
			delete(node, name)
		}
		return node
	case []any:
		i := 0
		fmt.Sscan(name, &i)
		if len(path) > 1 {
			node[i] = without(node[i], path[1:], with)
			return node
		}
		return slices.Delete(node, i, i+1)
	}
	return node // it was within something that is taken, too
}

func treeOf(file []byte) any {
	var root any
	d := json.NewDecoder(bytes.NewReader(file))
	d.UseNumber()
	if d.Decode(&root) != nil {
		return nil
	}
	return root
}

// A shown file is what a reader sees of it, and what verification finds.
type shown struct {
	report *verify.Report
	ids    []string
}

func look(t *testing.T, file []byte, o verify.Options) (s shown, is bool) {
	t.Helper()
	o.Each = func(r *evidence.Record) { s.ids = append(s.ids, r.Payload.RecordID) }
	var err error
	s.report, err = verify.File(file, o)
	return s, err == nil
}

var basisRank = map[string]int{"": 0, "signed": 1, "operator": 2, "independent": 3, "qualified": 4, "ca": 3, "owner": 4, "alone": 1, "witness": 2, "compared": 2, "both": 3}

// joint guarantees are about several records. Of one of these records they say nothing.
var joint = []verify.Guarantee{verify.Chain, verify.HumanReview, verify.GivenOn, verify.Completeness, verify.Simultaneity, verify.Verdict, verify.Envelope}

// raised says what is proved of a file that was not proved when more was shown, and by which rule it was not. What contradicted a statement may
// be missing then, so that it is open: it is never proved.
func raised(before, after shown, whole bool) (list [][2]string) {
	for _, g := range verify.Guarantees() {
		if was := before.report.Of(g); (whole || slices.Contains(joint, g)) && after.report.Of(g).Status == verify.Proved && was.Status != verify.Proved {
			list = append(list, [2]string{string(g), was.Rule})
		}
		for _, id := range after.ids {
			was := before.report.For(g, id)
			if !slices.Contains(joint, g) && after.report.For(g, id).Status == verify.Proved && was.Status != verify.Proved {
				list = append(list, [2]string{string(g), was.Rule})
			}
		}
	}
	if slices.ContainsFunc(list, func(one [2]string) bool { return one[1] != "rests" }) { // what only rests on it, follows
		list = slices.DeleteFunc(list, func(one [2]string) bool { return one[1] == "rests" })
	}
	if b, a := before.report.Basis, after.report.Basis; whole && a != nil && b != nil && len(list) == 0 {
		for name, pair := range map[string][2]string{"level": {string(b.Level), string(a.Level)}, "keys": {string(b.Keys), string(a.Keys)}, "time": {string(b.Time), string(a.Time)}, "log": {string(b.Log), string(a.Log)}} {
			if basisRank[pair[1]] > basisRank[pair[0]] {
				list = append(list, [2]string{name, ""})
			}
		}
	}
	if len(list) == 0 && whole && after.report.Outcome == verify.Proved && before.report.Outcome != verify.Proved {
		list = append(list, [2]string{"outcome", ""})
	}
	return list
}

// declared are the exceptions that the format makes: a part that is itself wrong, and is taken away, or that says something which nothing in the
// file leads to.
var declared = []struct {
	kinds, rules []string
	why          string
}{
	{[]string{"certificates", "certificate of a token", "timestamps"}, []string{"effort"}, "the part made the file cost more than a verifier spends"},
	{[]string{"certificates", "certificate of a token"}, []string{"certificate", "authority"}, "there were more certificates than a verifier looks at"},
	{[]string{"timestamps"}, []string{"token", "service"}, "the token was one of something else"},
	{[]string{"timestamps", "certificate of a token"}, []string{"validity"}, "the token said that the record is older than its key"},
	{[]string{"renewal", "anchors", "certificate of a token"}, []string{"status"}, "a renewal says how a service was listed later: where there is none, the time of the token alone counts"},
	{[]string{"anchors", "renewal"}, []string{"token", "fork", "effort"}, "the token was one of something else, the log has signed two histories, or there was too much to try"},
	{[]string{"disclosures"}, []string{"disclosure", "provable"}, "what was disclosed was not what is committed to"},
	{[]string{"disclosures"}, []string{""}, "what bytes contradict is open where one of both is withheld, which lowers no level"},
	{[]string{"properties"}, []string{"proof"}, "the proof was wrong"},
	{[]string{"signature line"}, []string{"checkpoint", "cosignature", "witnesses"}, "the line was wrong"},
	{[]string{"log"}, []string{"subject", "count", "causality"}, "the log's word on one record contradicted another; without it, the record has no place"},
	{[]string{"records"}, nil, "a record says something of another; a file does not say what is not in it"},
}

func excused(taken []taking, rule string) bool {
	for _, d := range declared {
		kind := func(p taking) bool { return d.kinds == nil || slices.Contains(d.kinds, p.kind) }
		if slices.ContainsFunc(taken, kind) && (d.rules == nil || slices.Contains(d.rules, rule)) {
			return true
		}
	}
	return false
}

// TestLessShownProvesNoMore takes away each part of honest and forged files that anybody may take away, one at a time and in pairs. No answer,
// of a record or of a file, may then be proved that was not proved before.
func TestLessShownProvesNoMore(t *testing.T) {
	singles, pairs := 1, 1
	if os.Getenv("JURAT_TEST_LONG") != "" {
		singles, pairs = 1<<20, 200
	}
	random := rand.New(rand.NewPCG(1, 1))
	tried := map[string]int{}
	for _, g := range filesOfEveryKind(t) {
		before, is := look(t, g.file, g.o)
		root, isObject := treeOf(g.file).(map[string]any)
		if !is || !isObject || before.report.Of(verify.Content).Rule == "form" { // one that does not open has no parts
			continue
		}
		parts := takings(t, root, "")
		var sets [][]taking
		for _, i := range random.Perm(len(parts))[:min(singles, len(parts))] {
			sets = append(sets, []taking{parts[i]})
		}
		for range min(pairs, len(parts)*len(parts)) {
			if one, other := parts[random.IntN(len(parts))], parts[random.IntN(len(parts))]; one.place != other.place {
				sets = append(sets, []taking{one, other})
			}
		}
		for _, taken := range sets {
			after, is := look(t, less(t, g.file, taken...), g.o)
			if !is {
				continue
			}
			whole, names := true, ""
			for _, part := range taken {
				tried[part.kind]++
				whole = whole && part.kind != "records"
				names += part.place + " "
			}
			for _, what := range raised(before, after, whole) {
				if !excused(taken, what[1]) && !strings.Contains(g.name, "no-step-is-left") { // whose certificates cost so much that a list is not checked
					t.Errorf("%s without %s(%s): %s, which was open by the rule %q", g.name, names, taken[0].kind, what[0], what[1])
				}
			}
		}
	}
	for _, kind := range []string{"timestamps", "disclosures", "certificates", "properties", "signatures", "records", "log", "checkpoint", "anchors", "renewal", "signature line", "certificate of a token"} {
		must.Hold(t, tried[kind] != 0, "no file has a part of the kind %q", kind)
	}
}

// filesOfEveryKind are the committed vectors and what the tests of this package make besides.
func filesOfEveryKind(t *testing.T) (list []given) {
	t.Helper()
	files, m := readVectors(t), readVectorManifest(t)
	for _, v := range m.Verifications {
		if len(v.With) == 0 && !v.Refused && len(files[v.File]) < 1<<20 {
			list = append(list, given{name: v.Name, file: files[v.File], o: readerOf(t, files, v)})
		}
	}
	for _, s := range sightings() {
		h := jurattest.New(t)
		b, _ := s.bundle(t, h)
		list = append(list, givenBundle(t, s.name, b, h.Options(t)))
	}
	return list
}
