package verify_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/timestamp"
	"jurat/verify"
	"jurat/verify/trust"
)

// go test ./verify -run '^$' -bench Bundle100k -benchtime 1x -records 100000
var benchRecords = flag.Int("records", 2000, "how many records the bundle of BenchmarkBundle100k has")

// bundleFile writes a bundle of many records without holding it in memory, and returns the options that verify it.
func bundleFile(b *testing.B, file string, records, payload int) verify.Options {
	b.Helper()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	signer, err := evidence.NewSigner(key, rand.Reader)
	must(err)
	public, err := evidence.MarshalPublicKey(key.Public())
	must(err)
	private, logKey, err := note.GenerateKey(nil, "bench.example/log")
	must(err)
	log, err := note.NewSigner(private)
	must(err)
	trusted := &trust.Trust{Format: trust.Format, Logs: []string{logKey},
		Keys:        []trust.Key{{Name: "a", Role: evidence.RoleAgent, Algorithm: evidence.ES256, KeyID: signer.Info().KeyID, PublicKey: public, Custody: trust.ByOwner}},
		Authorities: []trust.Authority{{Name: "mock", Certificate: timestamp.NewMock().Certificates()[1].Raw, Clock: trust.Independent}}}
	doc, err := trusted.Marshal()
	must(err)
	trusted, err = trust.Parse(doc)
	must(err)

	p := output("a")
	p.Response = jsontext.Value(`"` + strings.Repeat("The A9 via Nuremberg. ", payload/22) + `"`)
	draft, err := evidence.NewDraft(p)
	must(err)
	authority := timestamp.NewMock()
	var hashes []tlog.Hash
	reader := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		list := make([]tlog.Hash, len(indexes))
		for i, index := range indexes {
			list[i] = hashes[index]
		}
		return list, nil
	})
	sealed, err := os.Create(file + ".sealed")
	must(err)
	defer os.Remove(sealed.Name())
	defer sealed.Close()
	out := bufio.NewWriter(sealed)
	for i := range records {
		r, err := draft.Seal(evidence.Sealing{Signers: []evidence.Signer{signer}, RecordID: fmt.Sprintf("01890000-0000-7000-8000-%012d", i)})
		must(err)
		token, err := authority.Issue(&timestamp.Request{Imprint: r.Imprint(), CertReq: true})
		must(err)
		r.Timestamps = []evidence.Timestamp{{Kind: evidence.RFC3161, Token: token}}
		more, err := tlog.StoredHashes(int64(i), r.LogEntry(evidence.LogCounts{}), reader)
		must(err)
		hashes = append(hashes, more...)
		form, err := r.Marshal()
		must(err)
		_, err = out.Write(form)
		must(err)
	}
	must(out.Flush())
	root, err := tlog.TreeHash(int64(records), reader)
	must(err)
	checkpoint, err := operator.SignCheckpoint(operator.Checkpoint{Origin: log.Name(), Size: int64(records), Root: root}, log)
	must(err)
	empty, err := (&evidence.Bundle{Checkpoint: checkpoint}).Marshal()
	must(err)

	_, err = sealed.Seek(0, io.SeekStart)
	must(err)
	in := bufio.NewReader(sealed)
	bundle, err := os.Create(file)
	must(err)
	out = bufio.NewWriter(bundle)
	_, err = out.WriteString(strings.TrimSuffix(string(empty), "]}\n"))
	must(err)
	for i := range records {
		form, err := in.ReadBytes('\n')
		must(err)
		r, err := evidence.Open(form)
		must(err)
		proof, err := tlog.ProveRecord(int64(records), int64(i), reader)
		must(err)
		r.Log = &evidence.LogProof{Index: int64(i), Proof: [][]byte{}}
		for _, node := range proof {
			r.Log.Proof = append(r.Log.Proof, node[:])
		}
		form, err = r.Marshal()
		must(err)
		if i > 0 {
			must(out.WriteByte(','))
		}
		_, err = out.Write(form[:len(form)-1])
		must(err)
	}
	_, err = out.WriteString("]}\n")
	must(err)
	must(out.Flush())
	must(bundle.Close())
	return verify.Options{Trust: trusted, UnsafeAllowMock: true}
}

// BenchmarkBundle100k verifies a large bundle from its file. It measures the time, the cores in use, and the largest
// live heap. It measures the heap in a run of its own, with constant garbage collection.
func BenchmarkBundle100k(b *testing.B) {
	if testing.Short() {
		b.Skip("it makes a large file")
	}
	for _, size := range []int{1 << 10, 16 << 10} {
		b.Run(fmt.Sprintf("%d records of %d KiB", *benchRecords, size>>10), func(b *testing.B) {
			file := filepath.Join(b.TempDir(), "bundle")
			o := bundleFile(b, file, *benchRecords, size)
			b.ResetTimer()
			for b.Loop() {
				verifyFile(b, file, o)
			}
			b.StopTimer()
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(*benchRecords), "µs/record")
			heap := mostHeap(func() { verifyFile(b, file, o) })
			info, err := os.Stat(file)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(heap)/(1<<20), "heap-MiB")
			b.ReportMetric(float64(heap)/float64(*benchRecords), "heap-B/record")
			b.ReportMetric(float64(info.Size())/(1<<20), "file-MiB")
		})
	}
}

func verifyFile(b *testing.B, name string, o verify.Options) {
	b.Helper()
	file, err := os.Open(name)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	r, err := verify.Read(file, o)
	if err != nil || r.Outcome != verify.Proved || r.Records != *benchRecords {
		b.Fatalf("%v, %+v", err, r)
	}
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
