package main

import (
	"context"
	"crypto"
	"crypto/x509"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/archive"
	"jurat/internal/bench"
	"jurat/internal/installation"
	"jurat/internal/ledger/storage"
	"jurat/timestamp"
	"jurat/verify"
	"jurat/verify/trust"
)

// archiveSize is how many records the benchmark has: JURAT_ARCHIVE_RECORDS, or some ten thousand.
func archiveSize(b *testing.B) int {
	text := os.Getenv("JURAT_ARCHIVE_RECORDS")
	if text == "" {
		return 20 * storage.TileWidth
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < storage.TileWidth {
		b.Fatalf("JURAT_ARCHIVE_RECORDS: %q", text)
	}
	return n
}

// BenchmarkArchive seals records with payloads of 2 KiB, archives them, reads some of them in random order, and verifies
// all files. It compares the verification with checking only the signature and the token of each record, on all cores.
func BenchmarkArchive(b *testing.B) {
	i, plain := archivedHouse(b, archiveSize(b))
	files, err := i.Ledger.Archives(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	var packed int64
	for _, f := range files {
		info, err := os.Stat(i.Archivist.Folder.Path(f.File))
		if err != nil {
			b.Fatal(err)
		}
		packed += info.Size()
	}
	trusted, err := i.Trust(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	options := verify.Options{Trust: trusted, Memory: timestamp.NewMemory()}
	bare := newBareVerifier(b, i, trusted)
	b.ResetTimer()
	var verified, checked int64
	var verifying, checking time.Duration
	var most uint64
	for range b.N {
		for n, in := range files {
			path := i.Archivist.Folder.Path(in.File)
			begin := time.Now()
			checked += bare.during(3 * time.Second)
			checking += time.Since(begin)
			runtime.GC()
			memory := bench.WatchMemory()
			begin = time.Now()
			v := &archiveVerification{report: &archiveReport{}, options: options}
			if err := archive.OpenPath(path, func(f *archive.File) error {
				v.begin(f)
				return v.check(b.Context(), f, nil)
			}); err != nil {
				b.Fatal(err)
			}
			verifying += time.Since(begin)
			most = max(most, memory())
			if r := v.end(); r.Outcome != verify.Proved || r.Records != in.To-in.From {
				b.Fatalf("%+v", r)
			}
			verified += in.To - in.From
			b.Logf("file %d of %d: verified %.0f/s, bare %.0f/s", n+1, len(files), float64(verified)/verifying.Seconds(), float64(checked)/checking.Seconds())
		}
	}
	b.StopTimer()
	rate, limit := float64(verified)/verifying.Seconds(), float64(checked)/checking.Seconds()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(rate, "verified/s")
	b.ReportMetric(rate/limit, "of_bare")
	b.ReportMetric(float64(most)/(1<<20), "MiB_most")
	b.ReportMetric(100*float64(packed)/float64(plain), "%_of_plain")
	b.ReportMetric(float64(readAnywhere(b, i, files).Microseconds()), "µs/cold_read")
}

// archivedHouse seals records and archives them. It returns the total size of payloads, signatures and tokens.
func archivedHouse(b *testing.B, n int) (i *installation.Installation, plain int64) {
	c := installation.Config{Dir: filepath.Join(b.TempDir(), "data")}
	if err := installation.Create(b.Context(), c); err != nil {
		b.Fatal(err)
	}
	i, err := installation.Open(b.Context(), c)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { i.Close() })
	signers, err := i.Keys.Signers(b.Context(), evidence.RoleAgent, "agent-7")
	if err != nil {
		b.Fatal(err)
	}
	var bytes, next atomic.Int64
	var all sync.WaitGroup
	for k := range 256 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(k), 7))
			for next.Add(1) <= int64(n) {
				d, err := evidence.ParseDraft(said(random))
				if err != nil {
					b.Error(err)
					return
				}
				r, err := i.Ledger.Seal(context.Background(), d, signers)
				if err != nil {
					b.Error(err)
					return
				}
				bytes.Add(int64(len(r.Canonical()) + len(r.Signatures[0]) + len(r.Timestamps[0].Token)))
			}
		})
	}
	all.Wait()
	done, err := i.Archivist.Archive(b.Context(), archive.Order{Before: time.Now().AddDate(0, 0, 1)})
	if err != nil || len(done.Files) == 0 {
		b.Fatalf("%+v, %v", done, err)
	}
	return i, bytes.Load() * done.To / int64(n)
}

// said returns a payload of about 2 KiB with words in random order.
func said(random *rand.Rand) []byte {
	words := strings.Fields(`a about account after agent agreed airline all allowed already amount and any asked at available back baggage because before
		booking but by call cancel card change charged check city confirmed could customer date day delayed departure did do economy economy fare fee flight for
		found from full gave go have hours i if in is issue it itinerary later less may member no not number of offer on one only or order other paid passenger
		payment please policy price reason record refund refused request reservation return said same seat see should since so some status stay still sure
		ticket time to today told total travel under until upgrade user was were when which will with within without would year yes you`)
	text := func(size int) string {
		var b strings.Builder
		for b.Len() < size {
			b.WriteString(words[random.IntN(len(words))])
			b.WriteByte(' ')
		}
		return b.String()
	}
	return fmt.Appendf(nil, `{"agent_id":"agent-7","request_id":"req-%d","timestamp":"2024-01-31T16:15:00Z","model":"m","model_version":"1",
		"parameters":{"temperature":0.5},"prompt":%q,"response":%q}`, random.Uint64(), text(900), text(700))
}

// bareVerifier checks only a record's signature and the signature of its token.
type bareVerifier struct {
	b       *testing.B
	records []*evidence.Record
	key     crypto.PublicKey
	roots   timestamp.Options
}

func newBareVerifier(b *testing.B, i *installation.Installation, trusted *trust.Trust) *bareVerifier {
	v := &bareVerifier{b: b, roots: timestamp.Options{Memory: timestamp.NewMemory()}}
	for r, err := range i.Ledger.Records(b.Context(), 0) {
		if err != nil {
			b.Fatal(err)
		}
		if v.records = append(v.records, r.Record); len(v.records) == 2000 {
			break
		}
	}
	known := trusted.Key(v.records[0].Payload.Signers[0].KeyID)
	if known == nil {
		b.Fatal("no such key")
	}
	var err error
	if v.key, err = evidence.ParsePublicKey(known.PublicKey); err != nil {
		b.Fatal(err)
	}
	for _, a := range trusted.Authorities {
		root, err := x509.ParseCertificate(a.Certificate)
		if err != nil {
			b.Fatal(err)
		}
		v.roots.Roots = append(v.roots.Roots, root)
	}
	return v
}

func (v *bareVerifier) during(d time.Duration) int64 {
	var n atomic.Int64
	var all sync.WaitGroup
	end := time.Now().Add(d)
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for time.Now().Before(end) {
				r := v.records[int(n.Add(1))%len(v.records)]
				err := r.CheckSignature(0, v.key)
				if err == nil {
					var token *timestamp.Unverified
					if token, err = v.roots.Memory.Parse(r.Timestamps[0].Token); err == nil {
						_, err = token.Verify(r.Imprint(), v.roots)
					}
				}
				if err != nil {
					v.b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	return n.Load()
}

// readAnywhere measures the average time to open a file and read one of its records.
func readAnywhere(b *testing.B, i *installation.Installation, files []storage.Archived) time.Duration {
	random := rand.New(rand.NewPCG(1, 1))
	const n = 500
	begin := time.Now()
	for range n {
		in := files[random.IntN(len(files))]
		if err := archive.OpenPath(i.Archivist.Folder.Path(in.File), func(f *archive.File) error {
			_, err := f.Record(in.From + random.Int64N(in.To-in.From))
			return err
		}); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(begin) / n
}
