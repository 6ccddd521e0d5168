package verify_test

import (
	"bufio"
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"fmt"
	"io"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/timestamp"
	"jurat/verify"
)

// A hostileShape describes the records of a bundle that should fill the verifier's memory.
type hostileShape struct {
	name    string
	members func(n int) string // of the payload of record n, after its id, each with a comma before it
	signers int
	stamps  int
	records int
	most    uint64 // bytes that a bundle of them may take beside what each record may
	beyond  bool   // of more than a check keeps
}

const (
	aMessage   = `,"action_type":"message","agent_id":"a","request_id":"r","timestamp":"2026-01-01T00:00:00Z","model":"m","model_version":"m","prompt":"p","response":"r","parameters":{}`
	mostRecord = 6 << 10 // bytes that each record may take
)

func hostileShapes() []hostileShape {
	return []hostileShape{
		{"many signers", func(int) string { return aMessage }, 16, 0, 12_000, 40 << 20, false},
		{"long names", func(n int) string {
			members := `,"action_type":"message","timestamp":"2026-01-01T00:00:00Z","prompt":"p","response":"r","parameters":{},"chain_position":7`
			for _, name := range []string{"agent_id", "request_id", "model", "model_version", "chain_id", "previous_agent", "next_agent", "parent_request_id"} {
				members += fmt.Sprintf(`,%q:"%s %d %s"`, name, name, n, strings.Repeat("x", 150))
			}
			return members
		}, 1, 0, 8_000, 40 << 20, false},
		{"many links", linkedRecord, 1, 0, 2_500, 80 << 20, true},
		{"many time stamps", func(int) string { return aMessage }, 1, 128, 3_000, 16 << 20, false},
		{"long acts of a trial", func(n int) string {
			return fmt.Sprintf(`,"action_type":"absence","agent_id":"clerk","timestamp":"2026-01-01T00:00:00Z","chain_id":"trial-1","chain_position":7,`+
				`"previous_record":"sha256:%064x","case":"sha256:%064x","response":{"reason":%q}`, n+1, n+1, strings.Repeat("y", 100_000))
		}, 1, 0, 2_500, 160 << 20, true},
	}
}

// linkedRecord is of a chain, a review or an act of a trial, and names 1,000 missing records.
func linkedRecord(n int) string {
	members := []string{
		aMessage + `,"chain_id":"c","chain_position":7`,
		`,"action_type":"human_review","reviewer_id":"r","timestamp":"2026-01-01T00:00:00Z","original_response_id":"x","approval_status":"approved"`,
		fmt.Sprintf(`,"action_type":"absence","agent_id":"clerk","timestamp":"2026-01-01T00:00:00Z","chain_id":"trial-1","chain_position":7,`+
			`"previous_record":"sha256:%064x","case":"sha256:%064x","response":{}`, n+1, n+1),
	}
	return members[n%len(members)] + `,"saw":[` + numberedDigests(n, 1000) + `]`
}

// notLookedAt checks whether a report says that every guarantee about several records was not checked. Then it has no
// other finding against them.
func notLookedAt(t *testing.T, r *verify.Report, want bool) {
	t.Helper()
	mutual := []verify.Guarantee{verify.Configuration, verify.Chain, verify.HumanReview, verify.Completeness, verify.Simultaneity, verify.Verdict}
	said := map[verify.Guarantee]bool{}
	for _, f := range r.Details {
		said[f.Guarantee] = said[f.Guarantee] || f.Rule == "volume"
		must.Need(t, !want || f.Rule == "volume" || !slices.Contains(mutual, f.Guarantee), "%+v", f)
	}
	for _, f := range r.Guarantees {
		rests := f.Guarantee == verify.Order || slices.Contains(mutual, f.Guarantee)
		must.Hold(t, said[f.Guarantee] == (want && rests) && (!said[f.Guarantee] || f.Guarantee == verify.Order || f.Status == verify.NotProved),
			"of more than is kept, %v: %+v", want, f)
	}
}

func numberedDigests(n, many int) string {
	list := make([]string, many)
	for i := range list {
		list[i] = fmt.Sprintf(`"sha256:%064x"`, n*many+i+1)
	}
	return strings.Join(list, ",")
}

// record is a record of this shape, as text. Nothing in it is valid, and each record has other keys and time stamps.
func (s *hostileShape) record(t testing.TB, n int) string {
	t.Helper()
	var signers, signatures, stamps []string
	for i := range s.signers {
		signers = append(signers, fmt.Sprintf(`{"alg":"ES256","key_id":"sha256:%064x"}`, n*s.signers+i+1))
		signatures = append(signatures, `"`+base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 70))+`"`)
	}
	for i := range s.stamps {
		stamps = append(stamps, fmt.Sprintf(`{"kind":"rfc3161","token":%q}`, base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "no token %d %d", n, i))))
	}
	doc := fmt.Sprintf(`{"schema":"jurat/evidence/v1","record_id":"01890000-0000-7000-8000-%012x","signers":[%s]%s}`, n, strings.Join(signers, ","), s.members(n))
	payload := must.Get(evidence.Canonical([]byte(doc)))(t)
	count := ""
	if strings.Contains(doc, `"chain_id"`) {
		count = fmt.Sprintf(`"chain_seq":%d,`, n+1)
	}
	return fmt.Sprintf(`{"digest":%q,"log":{%s"index":%d,"proof":[]},"payload":%s,"signatures":[%s],"timestamps":[%s]}`, evidence.DigestOf(payload), count, n, payload,
		strings.Join(signatures, ","), strings.Join(stamps, ","))
}

// file writes a bundle of such records under a checkpoint.
func (s *hostileShape) file(t testing.TB, checkpoint string) *os.File {
	t.Helper()
	file := must.Get(os.Create(filepath.Join(t.TempDir(), "bundle")))(t)
	t.Cleanup(func() { file.Close() })
	empty := must.Get((&evidence.Bundle{Checkpoint: checkpoint, Records: []*evidence.Record{}}).Marshal())(t)
	out := bufio.NewWriter(file)
	before := strings.TrimSuffix(string(empty), "]}\n")
	for n := range s.records {
		fmt.Fprint(out, before, s.record(t, n))
		before = ","
	}
	fmt.Fprint(out, "]}\n")
	must.Do(t, out.Flush())
	must.Get(file.Seek(0, io.SeekStart))(t)
	return file
}

// TestMemoryIsBounded: the number of records bounds the verifier's memory, whatever the records hold.
func TestMemoryIsBounded(t *testing.T) {
	if os.Getenv("JURAT_TEST_LONG") == "" {
		t.Skip("it measures the heap, alone in its process: set JURAT_TEST_LONG=1")
	}
	if !measuresExactly(t) {
		return
	}
	h := jurattest.New(t)
	checkpoint := h.Bundle(t, h.Seal(t, output("a"))).Checkpoint
	o := h.Options(t)
	for _, shape := range hostileShapes() {
		t.Run(shape.name, func(t *testing.T) {
			file := shape.file(t, checkpoint)
			var r *verify.Report
			var err error
			kept := mostHeap(func() { r, err = verify.Read(file, o) })
			must.Need(t, err == nil && r.Records == shape.records && r.Of(verify.Content).Status == verify.NotProved, "%v, %d records", err, r.Records)
			most := shape.most + uint64(shape.records)*mostRecord
			t.Logf("%d bytes of %d, %d details, %d left out", kept, most, len(r.Details), r.LeftOut)
			must.Hold(t, kept <= most, "%d bytes are kept, want at most %d", kept, most)
			notLookedAt(t, r, shape.beyond)
		})
	}
}

// measuresExactly reports whether the collector stops everything while it marks what is live: otherwise what is made meanwhile counts as live, and that is
// more on a busy machine. A process that does not is told so as it starts, so this runs the test again in one that does.
func measuresExactly(t *testing.T) bool {
	t.Helper()
	const stops = "gcstoptheworld=1"
	if os.Getenv("GODEBUG") == stops {
		return true
	}
	again := exec.Command(os.Args[0], "-test.v", "-test.timeout=20m", "-test.run=^"+t.Name()+"$")
	again.Env = append(os.Environ(), "GODEBUG="+stops)
	out, err := again.CombinedOutput()
	must.Hold(t, err == nil && bytes.Contains(out, []byte("--- PASS: "+t.Name()+" ")), "%v\n%s", err, out)
	return false
}

// TestBothVerifiersCountAlike compares both verifiers on a bundle with the most allowed links, and on one with more.
// The second verifier takes minutes.
func TestBothVerifiersCountAlike(t *testing.T) {
	if os.Getenv("JURAT_TEST_LONG") == "" {
		t.Skip("only in the long form (JURAT_TEST_LONG)")
	}
	h := jurattest.New(t)
	shape := hostileShape{members: linkedRecord, signers: 1}
	trust := must.Get(h.Trust(t).Marshal())(t)
	var files []given
	for _, records := range []int{1100, 1140} { // some 936 or 937 of the links of each count
		shape.records = records
		file := shape.file(t, h.Bundle(t, h.Seal(t, output("a"))).Checkpoint)
		files = append(files, given{name: fmt.Sprintf("links-%d", records), file: must.Get(io.ReadAll(file))(t), trust: trust, o: h.Options(t)})
		r := check(t, files[len(files)-1].file, h.Options(t))
		notLookedAt(t, r, records > 1120)
	}
	compareOver(t, files)
}

// mostHeap returns by how much the live heap grew at most while do ran.
func mostHeap(do func()) uint64 {
	before, most, done := liveHeap(), uint64(0), make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	for {
		most = max(most, liveHeap())
		select {
		case <-done:
			return max(most, before) - before
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// liveHeap is what the collector found in use. What is made while it marks counts, unless it stops everything meanwhile (measuresExactly).
func liveHeap() uint64 {
	runtime.GC()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return live[0].Value.Uint64()
}

// A maze makes tokens whose certificates can be combined in many ways.
type maze struct {
	t    testing.TB
	root *x509.Certificate // of the authority that the reader trusts
	made int
}

func newMaze(t testing.TB, o verify.Options) *maze {
	t.Helper()
	return &maze{t: t, root: must.Get(x509.ParseCertificate(o.Trust.Authorities[0].Certificate))(t)}
}

// certificates returns CA certificates with the root's name. The first ones also name it as their issuer, the others
// name an unknown issuer. With the root itself, 3 and 0 of them take 31 steps, 3 and 4 take 95, 4 and 0 take 129.
func (m *maze) certificates(alike, others int) (list []*derNode) {
	m.t.Helper()
	for i := range alike + others {
		m.made++
		issuer := &x509.Certificate{RawSubject: m.root.RawSubject}
		if i >= alike {
			issuer = &x509.Certificate{Subject: pkix.Name{CommonName: "elsewhere"}}
		}
		template := &x509.Certificate{SerialNumber: big.NewInt(int64(m.made)), RawSubject: m.root.RawSubject, BasicConstraintsValid: true, IsCA: true,
			NotBefore: m.root.NotBefore, NotAfter: m.root.NotAfter}
		key := jurattest.AuthorityKey(m.t, "maze")
		der := must.Get(x509.CreateCertificate(nil, template, issuer, key.Public(), key))(m.t)
		list = append(list, must.Get(parseDER(der))(m.t))
	}
	return list
}

// stuffed adds certificates to a token. No signature covers them.
func (m *maze) stuffed(token []byte, alike, others int) []byte {
	m.t.Helper()
	certificates := m.certificates(alike, others)
	return signedAnew(m.t, token, func(k *derToken) {
		k.Data.At(3).Members = append(k.Data.At(3).Members, certificates...)
	})
}

// stranger returns a token by another authority whose root has the same name as the reader's.
func (m *maze) stranger(r *evidence.Record, alike, others int) []byte {
	m.t.Helper()
	rootKey, key := jurattest.AuthorityKey(m.t, "stranger root"), jurattest.AuthorityKey(m.t, "stranger")
	config := timestamp.CertificateConfig{Key: rootKey, Serial: big.NewInt(6), NotBefore: m.root.NotBefore, NotAfter: m.root.NotAfter,
		Operator: "WORTHLESS: its keys are published "}
	root := must.Get(timestamp.NewRoot(config))(m.t)
	must.Need(m.t, bytes.Equal(root.RawSubject, m.root.RawSubject), "the root's name is %s, want %s", root.Subject, m.root.Subject)
	config.Key, config.Serial = key, big.NewInt(7)
	certificate := must.Get(timestamp.NewCertificate(config, root, rootKey))(m.t)
	authority := must.Get(timestamp.NewAuthority(timestamp.AuthorityConfig{Key: key, Certificate: certificate,
		Now: func() time.Time { return jurattest.Start }, Rand: bytes.NewReader(bytes.Repeat([]byte{byte(m.made + 1)}, 64)), Policy: timestamp.MockPolicy()}))(m.t)
	token := parseDERToken(m.t, must.Get(authority.Issue(&timestamp.Request{Imprint: r.Imprint(), CertReq: true}))(m.t))
	token.Data.At(3).Members = append(token.Data.At(3).Members, m.certificates(alike, others)...)
	return token.Sign(m.t, key)
}

// spend puts tokens before those of a record. Each takes 95 steps and proves nothing.
func (m *maze) spend(r *evidence.Record, tokens int) {
	m.t.Helper()
	var stamps []evidence.Timestamp
	for range tokens {
		stamps = append(stamps, evidence.Timestamp{Kind: evidence.RFC3161, Token: m.stranger(r, 3, 4)})
	}
	r.Timestamps = append(stamps, r.Timestamps...)
}

// An effort is a record whose time takes many steps to prove, or too many.
type effort struct {
	name   string
	change func(m *maze, r *evidence.Record)
	rule   string // by which it is not proved; "" if it is
}

func efforts() []effort {
	stuff := func(alike, others int) func(m *maze, r *evidence.Record) {
		return func(m *maze, r *evidence.Record) {
			r.Timestamps[0].Token = m.stuffed(r.Timestamps[0].Token, alike, others)
		}
	}
	return []effort{
		{"31 steps to a path", stuff(3, 0), ""},
		{"95 steps to a path", stuff(3, 4), ""},
		{"more than 128 steps to a path", stuff(4, 0), "effort"},
		{"certificates that lead nowhere", stuff(0, 12), ""},
		{"95 steps to no path, and 31 to one", func(m *maze, r *evidence.Record) {
			stuff(3, 0)(m, r)
			m.spend(r, 1)
		}, ""},
		{"95 steps to no path, and 95 to one", func(m *maze, r *evidence.Record) {
			stuff(3, 4)(m, r)
			m.spend(r, 1)
		}, "effort"},
	}
}

// effortVectors are single records, and a bundle in which some records use up the steps that others need.
func effortVectors(t *testing.T) []given {
	t.Helper()
	var list []given
	for _, e := range efforts() {
		r, o := standaloneIn(t, jurattest.NewForStrangers(t), output("a"))
		e.change(newMaze(t, o), r)
		list = append(list, givenRecord(t, slug("effort", e.name), r, o))
	}
	b, o := effortBundle(t)
	return append(list, givenBundle(t, "effort-of-all-records", b, o))
}

// effortBundle has 36 records. Each of the first 33 takes 95 steps, so that 1 is left and 32 come with each further record. Of these the first needs 31, the second
// 95, and the last the step to its own path.
func effortBundle(t testing.TB) (*evidence.Bundle, verify.Options) {
	t.Helper()
	house := jurattest.NewForStrangers(t)
	o := house.Options(t)
	m := newMaze(t, o)
	var sealed []*evidence.Record
	for i := range 36 {
		sealed = append(sealed, house.Seal(t, output(fmt.Sprint("effort ", i))))
	}
	b := house.Bundle(t, sealed...)
	for i, r := range b.Records[:35] {
		others := 4
		if i == 33 {
			others = 0
		}
		r.Timestamps[0].Token = m.stuffed(r.Timestamps[0].Token, 3, others)
	}
	return b, o
}

// TestEffort: if the certificates of a record can be combined in too many ways, its time is not proved, and the
// report says why.
func TestEffort(t *testing.T) {
	for _, e := range efforts() {
		t.Run(e.name, func(t *testing.T) {
			r, o := standaloneIn(t, jurattest.NewForStrangers(t), output("a"))
			e.change(newMaze(t, o), r)
			found := verify.Record(r, o).Of(verify.Time)
			want := verify.Proved
			if e.rule != "" {
				want = verify.NotProved
			}
			must.Hold(t, found.Status == want && found.Rule == e.rule, "%+v, want %v %s", found, want, e.rule)
		})
	}
}

// TestEffortOfAFile: steps that some records use are not available to later ones. Parallel work and earlier files do not
// change the result.
func TestEffortOfAFile(t *testing.T) {
	b, o := effortBundle(t)
	file := must.Get(b.Marshal())(t)
	var first *verify.Report
	for _, cores := range []int{1, 2, 8} {
		before := runtime.GOMAXPROCS(cores)
		for range 5 {
			o.Memory = nil
			if cores == 8 {
				o.Memory = timestamp.NewMemory()
				must.Get(verify.File(file, o))(t)
			}
			report := must.Get(verify.File(file, o))(t)
			if first == nil {
				first = report
			}
			diff := cmp.Diff(first, report)
			must.Need(t, diff == "", "on %d cores: %s", cores, diff)
		}
		runtime.GOMAXPROCS(before)
	}
	if found := first.Of(verify.Time); found.Status != verify.NotProved || found.Rule != "effort" || found.Record != b.Records[34].Payload.RecordID || len(first.Times) != 35 {
		t.Errorf("%+v, %d times", found, len(first.Times))
	}
}

// mazeOfCAs adds certificates to a record that have the issuing CA's name, as subject and as issuer.
func mazeOfCAs(t *testing.T, n int) func(*world, *evidence.Record, *verify.Options) {
	return func(w *world, r *evidence.Record, _ *verify.Options) {
		for i := range n {
			key := newKey(t)
			template := caTemplate("issuing", int64(100+i))
			r.Certificates = append(r.Certificates, certify(t, template, key.Public(), template, key).Raw)
		}
	}
}
