package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/test/must"
	portalvisit "jurat/internal/web/portal/visit"
	"jurat/verify"
	"jurat/verify/trust"
)

// A shownFile is a file that a reader is shown, with the reader's own files.
type shownFile struct {
	vector   string // of testdata/vectors/verification
	owned    bool   // the trust file says of each key that its owner keeps it
	compared bool   // the reader has the checkpoint that the file is under
	unread   bool   // the second verifier does not read such files, as docs/format.md says
}

func ofVector(name string) shownFile { return shownFile{vector: name} }

// A demanded is what --require can name, with a file that meets it and one that does not. Without the demand both are proved,
// unless open says that the second is not.
type demanded struct {
	what       string
	met, unmet shownFile
	open       bool
}

var (
	ofTrial   = ofVector("decided-a-decision-that-another-person-approved")
	ofChain   = ofVector("chain-a-second-beginning")
	ofLog     = ofVector("checkpoint-alone")
	untrusted = ofVector("record-no-trust")
	unstamped = ofVector("record-no-token")
	stampedBy = shownFile{vector: "record-an-independent-clock", owned: true, compared: true}
	ofService = shownFile{vector: "qualified-the-last-list", owned: true, compared: true}
	certified = ofVector("certificate-an-old-list-that-is-older-and-names-it-on-hold")
	cosigned  = ofVector("witnesses-all-of-them")
	everyWay  = shownFile{vector: "checkpoint-witnessed", compared: true}
)

// demands has a row for each guarantee, each level, and each word of a part of the basis.
var demands = []demanded{
	{what: "content", met: ofChain, unmet: ofLog},
	{what: "authentication", met: ofChain, unmet: ofLog},
	{what: "non_repudiation", met: ofVector("record-the-owners-key"), unmet: ofVector("record-the-operators-key")},
	{what: "configuration", met: ofVector("chain-digests-without-places"), unmet: ofLog},
	{what: "vantage", met: ofVector("recorded-bytes-of-a-tool"), unmet: ofVector("recorded-bytes-withheld")},
	{what: "time", met: ofChain, unmet: ofLog},
	{what: "qualified", met: ofVector("qualified-the-last-list"), unmet: ofChain},
	{what: "property", met: ofVector("properties-a-range"), unmet: ofChain},
	{what: "before", met: ofVector("record-before-a-later-moment"), unmet: ofChain},
	{what: "order", met: ofChain, unmet: ofVector("checkpoint-of-a-log-that-nobody-knows"), open: true},
	{what: "chain", met: ofChain, unmet: ofLog},
	{what: "human_review", met: ofTrial, unmet: ofChain},
	{what: "given_on", met: ofVector("delivery-given-on"), unmet: ofChain},
	{what: "completeness", met: ofTrial, unmet: ofChain},
	{what: "simultaneity", met: ofTrial, unmet: ofChain},
	{what: "verdict", met: ofTrial, unmet: ofChain},

	{what: "signed", met: unstamped, unmet: untrusted, open: true},
	{what: "operator", met: ofChain, unmet: unstamped, open: true},
	{what: "independent", met: ofService, unmet: ofChain},
	{what: "independent-qualified", met: ofService, unmet: stampedBy},

	{what: "keys=operator", met: ofChain, unmet: untrusted, open: true},
	{what: "keys=ca", met: certified, unmet: ofChain},
	{what: "keys=owner", met: ofVector("record-the-owners-key"), unmet: certified},
	{what: "time=operator", met: ofChain, unmet: unstamped, open: true},
	{what: "time=independent", met: stampedBy, unmet: ofChain},
	{what: "time=qualified", met: ofService, unmet: stampedBy},
	{what: "log=alone", met: ofChain, unmet: ofVector("chain-of-a-log-that-nobody-knows"), open: true},
	{what: "log=compared", met: ofService, unmet: cosigned},
	{what: "log=witnessed", met: cosigned, unmet: ofChain},
	{what: "log=witnessed_and_compared", met: everyWay, unmet: cosigned},
}

// whatCanBeDemanded lists every guarantee and level, and every word of a part, as the program itself names them.
func whatCanBeDemanded(t *testing.T) (all []string) {
	t.Helper()
	for _, g := range verify.Guarantees() {
		if g != verify.Envelope { // no vector is in one: testdata/script/scitt.txtar demands it
			all = append(all, string(g))
		}
	}
	for _, l := range verify.Levels() {
		all = append(all, string(l))
	}
	for _, part := range []verify.Part{verify.PartKeys, verify.PartTime, verify.PartLog} {
		_, err := verify.ParseNeed(string(part) + "=?")
		match := regexp.MustCompile(`want one of \[(.+)\]`).FindStringSubmatch(fmt.Sprint(err))
		must.Need(t, match != nil, "%s: %v", part, err)
		for word := range strings.FieldsSeq(match[1]) {
			all = append(all, string(part)+"="+word)
		}
	}
	return all
}

// TestRequireEverything: each guarantee, level and part that --require takes is met by one file and not by another, on the command
// line, in the portal by a policy file, and in the second verifier. Nothing that can be demanded lacks a row.
func TestRequireEverything(t *testing.T) {
	var rows []string
	for _, d := range demands {
		rows = append(rows, d.what)
	}
	if want := whatCanBeDemanded(t); !slices.Equal(slices.Sorted(slices.Values(rows)), slices.Sorted(slices.Values(want))) {
		t.Fatalf("the table has rows for %q, and %q can be demanded", rows, want)
	}
	python, err := exec.LookPath("python3")
	must.Need(t, err == nil || os.Getenv("CI") != "true", "%v", err)
	var second secondAnswers
	for _, d := range demands {
		for _, way := range []struct {
			file    shownFile
			require string
			want    int
		}{{d.met, d.what, 0}, {d.unmet, d.what, exitUndecided}, {d.unmet, "", map[bool]int{true: exitUndecided}[d.open]}} {
			f := way.file.files(t, d.what)
			f.name += ", of which " + d.what + " is demanded"
			if way.require == "" && !d.open {
				f.same(t, "the command", f.command(t, ""), 0)
				continue
			}
			f.same(t, "the command", f.command(t, way.require), way.want)
			f.same(t, "the portal", f.portal(t, way.require), way.want)
			if !way.file.unread {
				second.asked = append(second.asked, f.arguments(way.require))
				second.expected = append(second.expected, func(got int) { f.same(t, "the second verifier", got, way.want) })
			}
		}
	}
	if python != "" {
		second.compare(t, python)
	}
}

// secondAnswers are lists of arguments for the second verifier, and what compares the exit code of each.
type secondAnswers struct {
	asked    [][]string
	expected []func(got int)
}

// compare runs the second verifier once for each list.
func (s *secondAnswers) compare(t *testing.T, python string) {
	t.Helper()
	lists := must.Get(json.Marshal(s.asked))(t)
	run := exec.Command(python, "../../testdata/second-verifier/verify.py", "-")
	var said bytes.Buffer
	run.Stdin, run.Stderr = bytes.NewReader(lists), &said
	out, err := run.Output()
	must.Need(t, err == nil, "%v: %s", err, &said)
	answers := 0
	for line := range bytes.Lines(out) {
		var answer struct{ Exit int }
		must.Do(t, json.Unmarshal(line, &answer))
		s.expected[answers](answer.Exit)
		answers++
	}
	must.Need(t, answers == len(s.asked), "the second verifier gave %d answers to %d questions: %s", answers, len(s.asked), &said)
}

// readerFiles are the paths of a file and of what its reader brings, and the moments.
type readerFiles struct {
	name                                              string
	file, trust, checkpoint, consistency, entries, at string
	before                                            string
	crls                                              []string
}

const vectorFolder = "../../testdata/vectors/verification"

// A manifested is what the manifest says of a vector.
type manifested struct {
	Name, File, Trust, Checkpoint, Consistency, Entries, At, Before string
	CRLs                                                            []string `json:"crls"`
}

// vectorManifest is read once: it is large.
var vectorManifest = sync.OnceValues(func() (manifest struct{ Verifications []manifested }, err error) {
	doc, err := os.ReadFile(filepath.Join(vectorFolder, "manifest.json"))
	if err == nil {
		err = json.Unmarshal(doc, &manifest)
	}
	return manifest, err
})

// files writes what a reader of this file has.
func (s shownFile) files(t *testing.T, what string) *readerFiles {
	t.Helper()
	manifest := must.Get(vectorManifest())(t)
	in := func(name string) string {
		if name == "" {
			return ""
		}
		return filepath.Join(vectorFolder, name)
	}
	for _, v := range manifest.Verifications {
		if v.Name != s.vector {
			continue
		}
		f := &readerFiles{name: s.vector, file: in(v.File), trust: in(v.Trust), checkpoint: in(v.Checkpoint), consistency: in(v.Consistency), entries: in(v.Entries), at: v.At, before: v.Before}
		for _, crl := range v.CRLs {
			f.crls = append(f.crls, in(crl))
		}
		s.change(t, f, what)
		return f
	}
	t.Fatalf("there is no vector %s", s.vector)
	return nil
}

// change makes the files that this reader has besides the vector's.
func (s shownFile) change(t *testing.T, f *readerFiles, what string) {
	t.Helper()
	put := func(name string, doc []byte) string {
		path := filepath.Join(t.TempDir(), name)
		must.Do(t, os.WriteFile(path, doc, 0o600))
		return path
	}
	if s.owned {
		trusted := must.Get(trust.Parse(contentOf(t, f.trust)))(t)
		for i := range trusted.Keys {
			trusted.Keys[i].Custody = trust.ByOwner
		}
		doc := must.Get(trusted.Marshal())(t)
		f.trust = put("trust.json", doc)
	}
	if s.compared {
		f.checkpoint = put("checkpoint", []byte(checkpointIn(t, contentOf(t, f.file))))
	}
}

// checkpointIn is the checkpoint that a record is under, or that the file is.
func checkpointIn(t *testing.T, doc []byte) string {
	t.Helper()
	if !bytes.HasPrefix(doc, []byte("{")) {
		return string(doc)
	}
	record, _, err := evidence.Read(doc)
	must.Do(t, err)
	return record.Log.Checkpoint
}

func contentOf(t *testing.T, path string) []byte {
	t.Helper()
	return must.Get(os.ReadFile(path))(t)
}

func (f *readerFiles) same(t *testing.T, who string, got, want int) {
	t.Helper()
	must.Hold(t, got == want, "%s on %s: exit code %d, want %d", who, f.name, got, want)
}

// arguments are those of the command and of the second verifier.
func (f *readerFiles) arguments(require string) (args []string) {
	for _, a := range [][2]string{{"--trust", f.trust}, {"--checkpoint", f.checkpoint}, {"--consistency", f.consistency}, {"--entries", f.entries}, {"--at", f.at}, {"--before", f.before}, {"--require", require}} {
		if a[1] != "" {
			args = append(args, a[0], a[1])
		}
	}
	for _, crl := range f.crls {
		args = append(args, "--crl", crl)
	}
	return append(args, f.file)
}

func (f *readerFiles) command(t *testing.T, require string) int {
	t.Helper()
	var out, errs bytes.Buffer
	return run(t.Context(), append([]string{"verify"}, f.arguments(strings.ReplaceAll(require, "_r", "-r"))...), stdio{in: strings.NewReader(""), out: &out, err: &errs})
}

// portal verifies as the page does, by a policy file. It returns the exit code that the command has for such an outcome.
func (f *readerFiles) portal(t *testing.T, require string) int {
	t.Helper()
	sources := []portalvisit.Source{}
	add := func(path string) int {
		doc := contentOf(t, path)
		sources = append(sources, portalvisit.Source{Name: filepath.Base(path), Size: int64(len(doc)), From: bytes.NewReader(doc)})
		return len(sources) - 1
	}
	request := map[string]any{"files": []int{add(f.file)}, "at": f.at, "before": f.before}
	for name, path := range map[string]string{"trust": f.trust, "checkpoint": f.checkpoint, "consistency": f.consistency, "entries": f.entries} {
		if path != "" {
			request[name] = add(path)
		}
	}
	crls := []int{}
	for _, crl := range f.crls {
		crls = append(crls, add(crl))
	}
	request["crls"] = crls
	if require != "" {
		policy := filepath.Join(t.TempDir(), "policy.json")
		must.Do(t, os.WriteFile(policy, []byte(policyOf(require)), 0o600))
		request["policy"] = add(policy)
	}
	doc := must.Get(json.Marshal(request))(t)
	v := &portalvisit.Visit{Now: time.Now}
	answer, err := v.Verify(doc, sources)
	must.Need(t, err == nil && answer.Files[0].Error == "", "%v: %+v", err, answer)
	var report struct{ Outcome verify.Status }
	must.Do(t, json.Unmarshal([]byte(answer.Files[0].Report), &report))
	return map[verify.Status]int{verify.Proved: 0, verify.NotProved: exitUndecided, verify.Refuted: exitBad}[report.Outcome]
}

// policyOf is the policy file that demands what an argument of --require does.
func policyOf(require string) string {
	part, word, is := strings.Cut(require, "=")
	switch {
	case is:
		return fmt.Sprintf(`{"format":"jurat/policy/v1",%q:%q}`, part, word)
	case slices.Contains(verify.Levels(), verify.Level(require)):
		return fmt.Sprintf(`{"format":"jurat/policy/v1","level":%q}`, require)
	}
	return fmt.Sprintf(`{"format":"jurat/policy/v1","require":[%q]}`, require)
}
