package verify_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"jurat/internal/test/must"
	"jurat/jury"
	"jurat/verify"
	"jurat/verify/trust"
)

var update = flag.Bool("update", false, "write testdata/vectors/verification anew, after something was changed on purpose")

var vectorsDir = filepath.Join("..", "testdata", "vectors", "verification")

// vectorManifest is manifest.json of vectorsDir, from which a verifier in any language can test itself.
type vectorManifest struct {
	Format        string               `json:"format"`
	TrustFiles    []trustVector        `json:"trust_files"`
	Verifications []verificationVector `json:"verifications"`
}

type trustVector struct {
	File        string `json:"file"`
	Fingerprint string `json:"fingerprint,omitzero"`
	Refused     bool   `json:"refused,omitzero"`
}

// verificationVector is the reader's input, and the expected report or refusal.
type verificationVector struct {
	Name   string `json:"name"`
	File   string `json:"file"`
	Trust  string `json:"trust,omitzero"` // file; "": none
	Before string `json:"before,omitzero"`
	At     string `json:"at,omitzero"` // the moment of checking
	// What the reader knows of the log: files.
	Checkpoint  string `json:"checkpoint,omitzero"`
	Consistency string `json:"consistency,omitzero"`
	Entries     string `json:"entries,omitzero"`

	CRLs  []string `json:"crls,omitempty"` // files: revocation lists, in DER
	Grace int      `json:"grace,omitzero"` // in seconds; 0: that of the format

	Policy verify.Policy `json:"policy,omitzero"`

	With []string `json:"with,omitempty"` // files that are given together with the file: the report is of what they say together

	Refused bool            `json:"refused,omitzero"` // it is no file of the format
	Report  *expectedReport `json:"report,omitzero"`
}

// expectedReport is the part of a report on which two verifiers must agree: all of it except the wording and the
// details.
type expectedReport struct {
	Kind       verify.Kind       `json:"kind"`
	Records    int               `json:"records"`
	Mended     bool              `json:"mended,omitzero"`
	Trust      string            `json:"trust,omitzero"`
	Log        *verify.LogState  `json:"log,omitzero"`
	Outcome    verify.Status     `json:"outcome"`
	Guarantees []expectedFinding `json:"guarantees"`
	Details    []expectedFinding `json:"details,omitzero"` // where they are compared, too
	Times      []trust.TimeOf    `json:"times"`

	TrialOutcome *jury.TrialOutcome `json:"trial_outcome,omitzero"`
}

type expectedFinding struct {
	Guarantee verify.Guarantee `json:"guarantee"`
	Status    verify.Status    `json:"status"`
	Rule      string           `json:"rule,omitzero"`
	Record    string           `json:"record,omitzero"`
}

func expected(r *verify.Report) *expectedReport {
	e := &expectedReport{Kind: r.Kind, Records: r.Records, Mended: r.Mended, Trust: r.Trust, Log: r.Log, Outcome: r.Outcome, Times: r.Times, TrialOutcome: r.TrialOutcome}
	if e.Times == nil {
		e.Times = []trust.TimeOf{}
	}
	for _, f := range r.Guarantees {
		if f.Rule == "form" { // why a record of it does not open is written for people
			f.Record = ""
		}
		e.Guarantees = append(e.Guarantees, expectedFinding{f.Guarantee, f.Status, f.Rule, f.Record})
	}
	return e
}

// inDetail is expected, and every detail.
func inDetail(r *verify.Report) *expectedReport {
	e := expected(r)
	e.Details = []expectedFinding{}
	for _, f := range r.Details {
		if f.Rule == "form" {
			f.Record = ""
		}
		e.Details = append(e.Details, expectedFinding{f.Guarantee, f.Status, f.Rule, f.Record})
	}
	return e
}

// given is the input of a vector.
type given struct {
	name  string
	file  []byte
	trust []byte // nil: none
	o     verify.Options
	with  [][]byte // given together with the file
}

// makeVectors makes every file of vectorsDir.
func makeVectors(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	m := vectorManifest{Format: "jurat/vectors/v1"}
	trusted := map[string]string{} // file by content
	for _, g := range slices.Concat(recordVectors(t), tokenVectors(t), hostileVectors(t), effortVectors(t), fileVectors(t), chainVectors(t), reviewVectors(t), togetherVectors(t), trialVectors(t), decidedVectors(t), logVectors(t), tagVectors(t), propertyVectors(t), witnessVectors(t), recordedVectors(t), qualifiedVectors(t), anchorVectors(t), keptVectors(t)) {
		v := verificationVector{Name: g.name, File: g.name + ".json"}
		must.Need(t, files[v.File] == nil, "two vectors have the name %s", g.name)
		files[v.File] = g.file
		if g.trust != nil {
			v.Trust = trusted[string(g.trust)]
		}
		if g.trust != nil && v.Trust == "" {
			v.Trust = "trust-" + g.name + ".json"
			trusted[string(g.trust)], files[v.Trust] = v.Trust, g.trust
			m.TrustFiles = append(m.TrustFiles, trustVector{File: v.Trust, Fingerprint: fingerprint(t, g.trust)})
		}
		addKnownLog(t, files, g, &v)
		for i, file := range g.with {
			name := g.name + ".with-" + strconv.Itoa(i+1) + ".json"
			v.With, files[name] = append(v.With, name), file
		}
		v.Before, v.At, v.Policy = rfc3339(g.o.Before), rfc3339(g.o.At), g.o.Policy
		v.Report, v.Refused = reportOnVector(t, files, v)
		m.Verifications = append(m.Verifications, v)
	}
	for _, odd := range oddTrust(t) {
		name := "trust-" + odd.name + ".json"
		files[name] = odd.file
		m.TrustFiles = append(m.TrustFiles, trustVector{File: name, Fingerprint: fingerprint(t, odd.file)})
	}
	for _, bad := range refusedTrust(t) {
		name := "trust-" + bad.name + ".json"
		files[name] = bad.file
		m.TrustFiles = append(m.TrustFiles, trustVector{File: name, Refused: true})
		must.Refuse(t, "", name)(trust.Parse(bad.file))
	}
	doc := must.Get(json.Marshal(m, jsontext.WithIndent("  ")))(t)
	files["manifest.json"] = append(doc, '\n')
	return files
}

// addKnownLog adds the files of what the reader knows of the log.
func addKnownLog(t *testing.T, files map[string][]byte, g given, v *verificationVector) {
	t.Helper()
	if g.o.Checkpoint != "" {
		v.Checkpoint = g.name + ".checkpoint"
		files[v.Checkpoint] = []byte(g.o.Checkpoint)
	}
	if g.o.Consistency != nil {
		doc := must.Get(g.o.Consistency.Marshal())(t)
		v.Consistency = g.name + ".consistency.json"
		files[v.Consistency] = doc
	}
	if g.o.Entries != nil {
		doc := must.Get(io.ReadAll(io.NewSectionReader(g.o.Entries, 0, 1<<20)))(t)
		v.Entries = g.name + ".entries"
		files[v.Entries] = doc
	}
	for i, list := range g.o.CRLs {
		name := g.name + "." + strconv.Itoa(i+1) + ".crl"
		v.CRLs, files[name] = append(v.CRLs, name), list.Raw
	}
	v.Grace = int(g.o.Grace / time.Second)
}

func fingerprint(t *testing.T, doc []byte) string {
	t.Helper()
	trusted := must.Get(trust.Parse(doc))(t)
	digest := must.Get(trusted.Fingerprint())(t)
	return digest.String()
}

func rfc3339(moment time.Time) string {
	if moment.IsZero() {
		return ""
	}
	return moment.UTC().Format(time.RFC3339Nano)
}

// reportOnVector verifies a vector from its files, as a reader would.
func reportOnVector(t *testing.T, files map[string][]byte, v verificationVector) (report *expectedReport, refused bool) {
	t.Helper()
	question := questionOf(t, files, v)
	if a, is := answers.Load(question); is {
		return a.(answered).report, a.(answered).refused
	}
	r, refused := reportFor(t, files, v, readerOf(t, files, v))
	if !refused {
		report = expected(r)
	}
	answers.Store(question, answered{report, refused})
	return report, refused
}

// questionOf is the digest of a vector and of each file that it names.
func questionOf(t *testing.T, files map[string][]byte, v verificationVector) [sha256.Size]byte {
	t.Helper()
	v.Report, v.Refused = nil, false
	parts := [][]byte{must.Get(json.Marshal(v))(t)}
	for _, name := range slices.Concat([]string{v.File, v.Trust, v.Checkpoint, v.Consistency, v.Entries}, v.CRLs, v.With) {
		digest := sha256.Sum256(files[name])
		parts = append(parts, digest[:])
	}
	return sha256.Sum256(bytes.Join(parts, nil))
}

// answers are the reports on vectors of this run, by all that a verifier is given: the test that makes the vectors again and the one that verifies the committed ones ask the same.
var answers sync.Map

// answered is expected, of a vector that is verified once for all tests.
type answered struct {
	report  *expectedReport
	refused bool
}

// reportFor verifies a vector for a reader.
func reportFor(t *testing.T, files map[string][]byte, v verificationVector, o verify.Options) (r *verify.Report, refused bool) {
	t.Helper()
	var err error
	if len(v.With) == 0 {
		r, err = verify.File(files[v.File], o)
	} else {
		given := [][]byte{files[v.File]}
		for _, name := range v.With {
			given = append(given, files[name])
		}
		r = jointReport(t, given, o)
	}
	if errors.Is(err, verify.ErrNotOurs) {
		return nil, true
	}
	must.Need(t, err == nil, "%s: %v", v.Name, err)
	return r, false
}

// jointReport returns the report on files of one log together, or nil if they have nothing in common.
func jointReport(t *testing.T, files [][]byte, o verify.Options) *verify.Report {
	t.Helper()
	o.Together = verify.NewTogether(o)
	for _, file := range files {
		must.Get(verify.File(file, o))(t)
	}
	reports := o.Together.Reports()
	if len(reports) != 1 {
		return nil
	}
	return reports[0]
}

// readerOf returns what a reader gives beside the file.
func readerOf(t *testing.T, files map[string][]byte, v verificationVector) verify.Options {
	t.Helper()
	o, err := readerFrom(files, v)
	must.Need(t, err == nil, "%s: %v", v.Name, err)
	return o
}

// readerFrom is readerOf with an error for a file that is none of its kind.
func readerFrom(files map[string][]byte, v verificationVector) (verify.Options, error) {
	file := func(name string) *verify.InputFile {
		if name == "" {
			return nil
		}
		return &verify.InputFile{Name: name, From: bytes.NewReader(files[name])}
	}
	q := verify.Inputs{Now: func() time.Time { return time.Time{} }, Trust: file(v.Trust), Checkpoint: file(v.Checkpoint), Consistency: file(v.Consistency)}
	for text, moment := range map[string]**time.Time{v.Before: &q.Before, v.At: &q.At} {
		if text != "" {
			read, err := time.Parse(time.RFC3339, text)
			if err != nil {
				return verify.Options{}, err
			}
			*moment = &read
		}
	}
	for _, name := range v.CRLs {
		q.CRLs = append(q.CRLs, *file(name))
	}
	if v.Grace != 0 {
		q.Grace = new(time.Duration(v.Grace) * time.Second)
	}
	o, err := q.Options()
	if v.Entries != "" {
		o.Entries = bytes.NewReader(files[v.Entries])
	}
	o.Policy = v.Policy
	return o, err
}

// TestVectorsStand makes the vectors again and compares them with the committed ones, byte for byte.
func TestVectorsStand(t *testing.T) {
	files := makeVectors(t)
	if *update {
		writeVectors(t, files)
	}
	committed := readVectors(t)
	must.Equal(t, cmp.Diff(slices.Sorted(maps.Keys(files)), slices.Sorted(maps.Keys(committed))), "", "files (-made +committed):\n")
	for name, file := range files {
		must.Hold(t, bytes.Equal(file, committed[name]), "%s: differs from the committed file", name)
	}
}

// TestVectors verifies the committed vectors and compares every finding with the manifest's.
func TestVectors(t *testing.T) {
	files, m := readVectors(t), readVectorManifest(t)
	for _, v := range m.Verifications {
		report, refused := reportOnVector(t, files, v)
		diff := cmp.Diff(v.Report, report)
		must.Hold(t, diff == "" && refused == v.Refused, "%s: (-manifest +found):\n%s", v.Name, diff)
	}
	for _, v := range m.TrustFiles {
		_, err := trust.Parse(files[v.File])
		must.Hold(t, v.Refused == (err != nil), "%s: %v", v.File, err)
		must.Hold(t, err != nil || fingerprint(t, files[v.File]) == v.Fingerprint, "%s has another fingerprint", v.File)
	}
}

func readVectorManifest(t *testing.T) vectorManifest {
	t.Helper()
	var m vectorManifest
	must.Do(t, json.Unmarshal(readVectors(t)["manifest.json"], &m))
	must.Need(t, len(m.Verifications) != 0 && len(m.TrustFiles) != 0, "the manifest has no vectors")
	return m
}

func readVectors(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	entries := must.Get(os.ReadDir(vectorsDir))(t)
	for _, entry := range entries {
		files[entry.Name()] = must.Get(os.ReadFile(filepath.Join(vectorsDir, entry.Name())))(t)
	}
	return files
}

func writeVectors(t *testing.T, files map[string][]byte) {
	t.Helper()
	must.Do(t, errors.Join(os.RemoveAll(vectorsDir), os.MkdirAll(vectorsDir, 0o755)))
	for name, file := range files {
		must.Do(t, os.WriteFile(filepath.Join(vectorsDir, name), file, 0o644))
	}
}

// slug turns the name of a test into a file name.
func slug(words ...string) string {
	text := strings.ToLower(strings.Join(words, "-"))
	text = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r == ' ' || r == '-' || r == '_':
			return '-'
		}
		return -1
	}, text)
	return strings.ReplaceAll(text, "--", "-")
}

// inStatements is why rules about SCITT statements have no vectors: these are JSON. TestSecondVerifierOnStatements compares both verifiers, and TestEveryRuleOfAStatement
// breaks each of these rules.
const (
	inStatements = "SCITT statements are no JSON, and have tests of their own"
	ofDemands    = "vectors bring no demands: property_test.go does"
)

// noVector are the rules for which no vector can be made, with the reasons.
var noVector = map[string]string{
	"unsupported": inStatements,
	"demand":      ofDemands,
	"value":       ofDemands,
	"replay":      "a fault of the program itself: no file leads to it",
	"volume":      "the smallest file that leads to it has 77 MB",
}

// testedElsewhere are rows that tests notice and no vector does: TestWhatIsFoundOfNoVector, TestStrict, TestCarriedProofs, TestGaps, TestDeliveryOfWhatIsMissing,
// TestUnboundChainContradictsItself, TestVantageRests, TestLiesInsideThirdTrials.
var testedElsewhere = []string{"unknown-key[authentication]", "policy[authentication]", "missing[property]", "projection[vantage]", "gap[completeness]",
	"missing[human_review]", "time[chain]", "rests[vantage]", "rests[given_on]", "body[completeness]", "body[completeness simultaneity verdict]", "count[completeness]"}

// TestEveryRuleIsNeeded switches off each row of the tables of rules, one at a time, and demands that the answer to a vector changes.
func TestEveryRuleIsNeeded(t *testing.T) {
	rows, files := verify.Rules(), readVectors(t)
	tables := regexp.MustCompile(`(?m)\b(rulesOf\w+)`)
	if diff := cmp.Diff(matches(tables, read(t, "rules.go")), matches(tables, read(t, "internal_test.go"))); diff != "" || len(rows) < 100 {
		t.Fatalf("%d rows; tables (-code +verify.Rules):\n%s", len(rows), diff)
	}
	needed := map[*verify.RuleRow]bool{}
	for _, v := range readVectorManifest(t).Verifications {
		for _, row := range rows {
			row.Found.Store(false)
		}
		want := answerTo(t, files, v)
		for _, row := range rows {
			if row.Found.Load() && !needed[row] {
				row.Off = true
				needed[row] = !cmp.Equal(answerTo(t, files, v), want)
				row.Off = false
			}
		}
	}
	for _, row := range rows {
		if noVector[row.Name] == "" && !needed[row] && !slices.Equal(row.Of, []verify.Guarantee{verify.Envelope}) && !slices.Contains(testedElsewhere, fmt.Sprint(row.Name, row.Of)) {
			t.Errorf("no vector needs the rule %q of %s", row.Name, row.Of)
		}
	}
}

// answerTo verifies the files of a vector anew; nil: it fails, or has no report.
func answerTo(t *testing.T, files map[string][]byte, v verificationVector) *expectedReport {
	t.Helper()
	o, r := readerOf(t, files, v), (*verify.Report)(nil)
	if len(v.With) == 0 {
		var err error
		if r, err = verify.File(files[v.File], o); err != nil {
			return nil
		}
	} else {
		given := [][]byte{files[v.File]}
		for _, name := range v.With {
			given = append(given, files[name])
		}
		if r = jointReport(t, given, o); r == nil {
			return nil
		}
	}
	return inDetail(r)
}

// TestRulesOfTheFormat compares the rules of each guarantee in docs/format.md with those in the code.
func TestRulesOfTheFormat(t *testing.T) {
	code := map[verify.Guarantee][]string{}
	for _, row := range verify.Rules() {
		for _, g := range row.Of {
			code[g] = append(code[g], row.Name)
		}
	}
	quoted, rows := regexp.MustCompile("`([a-z-]+)`"), rowsOfGuarantees(t)
	for g, cells := range rows {
		own := matches(quoted, strings.Join(cells[4:6], " "))
		for _, name := range own {
			if !slices.Contains(append(code[g], "form", "no-record", "simultaneity"), name) { // of files that do not open; a guarantee
				t.Errorf("docs/format.md has the rule %q of %s, and the code has not", name, g)
			}
		}
		for _, name := range code[g] {
			if !slices.Contains(append(own, "empty", "replay"), name) && !strings.Contains(threeOf(rows, g), "`"+name+"`") { // of no record; a fault of the program itself
				t.Errorf("the code has the rule %q of %s, and docs/format.md has not", name, g)
			}
		}
	}
	rule := regexp.MustCompile("(?m)^\\| `([a-z_-]+)` \\| ")
	chains := matches(rule, formatSection(t, "## Reviews and chains"))
	for _, name := range append(chains, matches(rule, formatSection(t, "### The reader's knowledge of the log"))...) {
		must.Hold(t, slices.ContainsFunc(verify.Rules(), func(row *verify.RuleRow) bool { return row.Name == name }), "docs/format.md has the rule %q, and the code has not", name)
	}
	for _, g := range []verify.Guarantee{verify.Chain, verify.HumanReview, verify.GivenOn} {
		for _, name := range code[g] {
			must.Hold(t, slices.Contains(append(chains, "empty", "volume", "rests"), name), "%s of %s is in no table of reviews and chains in docs/format.md", name, g) // these three are of all guarantees
		}
	}
}

// rowsOfGuarantees is the table of guarantees in docs/format.md, with its cells.
func rowsOfGuarantees(t *testing.T) map[verify.Guarantee][]string {
	t.Helper()
	rows := map[verify.Guarantee][]string{}
	for line := range strings.Lines(formatSection(t, "### Guarantees")) {
		if cells := strings.Split(line, "|"); strings.HasPrefix(line, "| `") && len(cells) == 7 {
			rows[verify.Guarantee(strings.Trim(cells[1], " `"))] = cells
		}
	}
	must.Equal(t, len(rows), len(verify.Guarantees()))
	return rows
}

// threeOf is what the table says of the guarantees of trials together, in the cell of each of these; "": of the others.
func threeOf(rows map[verify.Guarantee][]string, g verify.Guarantee) string {
	if g != verify.Completeness && g != verify.Simultaneity && g != verify.Verdict {
		return ""
	}
	return rows[verify.Completeness][4] + rows[verify.Simultaneity][4] + rows[verify.Verdict][4] + rows[verify.Simultaneity][5]
}

// TestFormatDocumentOfGuarantees holds the table of guarantees in docs/format.md against what the vectors result in.
func TestFormatDocumentOfGuarantees(t *testing.T) {
	rows := rowsOfGuarantees(t)
	three := map[verify.Guarantee]string{}
	for g := range rows {
		three[g] = threeOf(rows, g)
	}
	for g := range rows {
		rows[g][5] += three[g]
	}
	for _, v := range readVectorManifest(t).Verifications {
		if v.Report == nil {
			continue
		}
		for _, f := range append(v.Report.Details, v.Report.Guarantees...) {
			cell := map[verify.Status]int{verify.Refuted: 4, verify.NotProved: 5}[f.Status]
			must.Hold(t, cell <= 0 || f.Rule == "" || f.Rule == "empty" || strings.Contains(rows[f.Guarantee][cell], "`"+f.Rule+"`"),
				"%s: the table does not say that %s is %s by %s", v.Name, f.Guarantee, f.Status, f.Rule)
		}
	}
}

// formatSection is a section of docs/format.md, without its heading.
func formatSection(t *testing.T, heading string) string {
	t.Helper()
	_, section, _ := strings.Cut(read(t, filepath.Join("..", "docs", "format.md")), "\n"+heading+"\n")
	section, _, found := strings.Cut(section, "\n"+strings.Fields(heading)[0]+" ")
	must.Equal(t, found, true)
	return section
}

func read(t *testing.T, name string) string {
	t.Helper()
	content := must.Get(os.ReadFile(name))(t)
	return string(content)
}

func matches(pattern *regexp.Regexp, text string) []string {
	var list []string
	for _, m := range pattern.FindAllStringSubmatch(text, -1) {
		list = append(list, m[1])
	}
	slices.Sort(list)
	return slices.Compact(list)
}
