package installation

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"jurat/evidence"
)

// benched is an installation as users have it, on the disk that the benchmark's temporary folder is on, and what is sealed in it:
// payloads of 2 KiB, with a signature of P-256 and a token of the built-in authority.
type benched struct {
	*Installation
	b       *testing.B
	draft   *evidence.Draft
	signers []evidence.Signer
}

func bench(b *testing.B) *benched {
	b.Helper()
	c := Config{Dir: filepath.Join(b.TempDir(), "data")}
	if err := Create(b.Context(), c); err != nil {
		b.Fatal(err)
	}
	i, err := Open(b.Context(), c)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { i.Close() })
	signers, err := i.Keys.Signers(evidence.RoleAgent, "agent-7")
	if err != nil {
		b.Fatal(err)
	}
	const frame = `{"agent_id":"agent-7","request_id":"req-1","timestamp":"2026-01-31T16:15:00Z","model":"m","model_version":"1","parameters":{"temperature":0.5},` +
		`"prompt":"May I send the parcel?","response":%q}`
	draft, err := evidence.ParseDraft(fmt.Appendf(nil, frame, strings.Repeat("It is 17 km away. ", 91)))
	if err != nil {
		b.Fatal(err)
	}
	return &benched{i, b, draft, signers}
}

func (s *benched) seal() int {
	r, err := s.Ledger.Seal(s.b.Context(), s.draft, s.signers, nil)
	if err != nil {
		s.b.Error(err)
		return 0
	}
	return len(r.Canonical())
}

// BenchmarkManyCallers has many seal at once, in turn with the two signatures alone that each record costs (its own and that of its
// token), on all cores. The first as a share of the second is of_two_signatures.
func BenchmarkManyCallers(b *testing.B) {
	for _, callers := range []int{16, 64, 256, 1024} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			s := bench(b)
			var sealing, signing time.Duration
			records, pairs := 0, 0
			slice := max(b.N/8, callers)
			b.ResetTimer()
			for records < b.N {
				begin := time.Now()
				pairs += signTwice(b, runtime.GOMAXPROCS(0), 100*time.Millisecond)
				signing += time.Since(begin)
				n := min(slice, b.N-records)
				begin = time.Now()
				s.together(callers, n)
				sealing += time.Since(begin)
				records += n
			}
			rate := float64(records) / sealing.Seconds()
			b.ReportMetric(rate, "records/s")
			b.ReportMetric(rate/(float64(pairs)/signing.Seconds()), "of_two_signatures")
			b.ReportMetric(float64(s.seal()), "payload_bytes")
		})
	}
}

// together has so many callers seal n records.
func (s *benched) together(callers, n int) {
	var left atomic.Int64
	left.Store(int64(n))
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				s.seal()
			}
		})
	}
	all.Wait()
}

// signTwice makes pairs of signatures of P-256 for a while, as many at once as there are cores, and returns how many.
func signTwice(b *testing.B, cores int, during time.Duration) int {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	var pairs atomic.Int64
	var all sync.WaitGroup
	end := time.Now().Add(during)
	for range cores {
		all.Go(func() {
			for digest := make([]byte, 32); time.Now().Before(end); pairs.Add(1) {
				for range 2 {
					if _, err := ecdsa.SignASN1(rand.Reader, key, digest); err != nil {
						b.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	return int(pairs.Load())
}

// BenchmarkLoneCaller seals one record after the other, in turn with what none can do without: writing a page and syncing it, and
// making the same record and its token without a log. Of each the median is taken. x_ideal is the first as a multiple of the other two.
func BenchmarkLoneCaller(b *testing.B) {
	s := bench(b)
	file, err := os.Create(filepath.Join(b.TempDir(), "file"))
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	page := make([]byte, 4096)
	var syncing, making, sealing []time.Duration
	for b.Loop() {
		syncing = append(syncing, took(func() {
			if _, err := file.Write(page); err != nil {
				b.Fatal(err)
			}
			if err := file.Sync(); err != nil {
				b.Fatal(err)
			}
		}))
		making = append(making, took(s.alone))
		sealing = append(sealing, took(func() { s.seal() }))
	}
	fsync, cryptography, sealed := median(syncing), median(making), median(sealing)
	b.ReportMetric(float64(fsync.Microseconds()), "µs_fsync")
	b.ReportMetric(float64(cryptography.Microseconds()), "µs_cryptography")
	b.ReportMetric(float64(sealed.Microseconds()), "µs_sealed")
	b.ReportMetric(float64(sealed)/float64(fsync+cryptography), "x_ideal")
}

// alone makes a record and its token, and keeps neither.
func (s *benched) alone() {
	now := time.Now()
	id, err := evidence.NewRecordID(now, rand.Reader)
	if err != nil {
		s.b.Fatal(err)
	}
	r, err := s.draft.Seal(evidence.Sealing{Signers: s.signers, Time: now, RecordID: id})
	if err != nil {
		s.b.Fatal(err)
	}
	if _, err := s.stampers.own.stamp(s.b.Context(), r.Imprint()); err != nil {
		s.b.Fatal(err)
	}
}

func took(do func()) time.Duration {
	begin := time.Now()
	do()
	return time.Since(begin)
}

func median(of []time.Duration) time.Duration {
	slices.Sort(of)
	return of[len(of)/2]
}
