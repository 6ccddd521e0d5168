package verify_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/must"
	"jurat/jurattest"
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
		if want && f.Rule != "volume" && slices.Contains(mutual, f.Guarantee) {
			t.Fatalf("%+v", f)
		}
	}
	for _, f := range r.Guarantees {
		rests := f.Guarantee == verify.Order || slices.Contains(mutual, f.Guarantee)
		if said[f.Guarantee] != (want && rests) || said[f.Guarantee] && f.Guarantee != verify.Order && f.Status != verify.NotProved {
			t.Errorf("of more than is kept, %v: %+v", want, f)
		}
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
			if err != nil || r.Records != shape.records || r.Of(verify.Content).Status != verify.NotProved {
				t.Fatalf("%v, %d records", err, r.Records)
			}
			most := shape.most + uint64(shape.records)*mostRecord
			t.Logf("%d bytes of %d, %d details, %d left out", kept, most, len(r.Details), r.LeftOut)
			if kept > most {
				t.Errorf("%d bytes are kept, want at most %d", kept, most)
			}
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
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name()+" ")) {
		t.Errorf("%v\n%s", err, out)
	}
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
