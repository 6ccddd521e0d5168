package erasure

import (
	"encoding/binary"
	"strings"
	"sync/atomic"
	"testing"

	"jurat/evidence"
	"jurat/internal/filestore"
	"jurat/internal/lock"
)

// BenchmarkKeep keeps records of three members, as a recorder does, from one caller and from 64.
func BenchmarkKeep(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(map[int]string{1: "alone", 64: "together"}[callers], func(b *testing.B) {
			files := filestore.NewFolder(b.TempDir()).Packed(lock.NewFolder(b.TempDir()), ValuesFolder, KeysFolder)
			v := NewStore(files)
			text := strings.Repeat("a word ", 200)
			var n atomic.Uint64
			keep := func() {
				r := saying(map[string]string{"/prompt": text, "/response": text, "/request_body": text})
				r.Digest = evidence.DigestOf(binary.BigEndian.AppendUint64(nil, n.Add(1)))
				if err := v.Keep(b.Context(), r); err != nil {
					b.Error(err)
				}
			}
			if callers == 1 {
				for b.Loop() {
					keep()
				}
			} else {
				b.SetParallelism(callers / 2)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						keep()
					}
				})
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
			if err := files.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
