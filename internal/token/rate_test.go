package token_test

import (
	"context"
	"crypto"
	"crypto/sha256"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"jurat/evidence"
)

// A device is a keeper that takes as long as hardware takes, and as few requests at once. It leaves the processor alone meanwhile.
type device struct {
	*keeper
	sessions chan struct{}
	each     time.Duration
}

func (d *device) Sign(ctx context.Context, uri string, data []byte) (crypto.PublicKey, []byte, error) {
	d.sessions <- struct{}{}
	defer func() { <-d.sessions }()
	time.Sleep(d.each)
	return d.keeper.Sign(ctx, uri, data)
}

// BenchmarkDevice measures a device alone and then through the protocol, both with 64 callers, in turn and in one run. It is for hardware
// what pkcs11.BenchmarkRate is for a token in software.
func BenchmarkDevice(b *testing.B) {
	for _, each := range []time.Duration{80 * time.Millisecond, 8 * time.Millisecond, 4 * time.Millisecond, 2 * time.Millisecond} {
		b.Run(fmt.Sprintf("8_sessions_of_%s", each), func(b *testing.B) {
			d := &device{newKeeper(), make(chan struct{}, 8), each}
			client := listen(b, d)
			key, err := client.Generate(b.Context(), mia, evidence.ES256)
			if err != nil {
				b.Fatal(err)
			}
			data := sha256.Sum256(nil)
			var alone, through time.Duration
			b.ResetTimer()
			for left := b.N; left > 0; left -= 200 {
				n := int64(min(left, 200))
				alone += callers(b, n, func(ctx context.Context) error { _, _, err := d.Sign(ctx, mia, data[:]); return err })
				through += callers(b, n, func(ctx context.Context) error { _, err := client.Sign(ctx, mia, key.Public, data[:]); return err })
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(b.N)/alone.Seconds(), "device/s")
			b.ReportMetric(float64(b.N)/through.Seconds(), "protocol/s")
			b.ReportMetric(alone.Seconds()/through.Seconds(), "of-device")
		})
	}
}

// callers has 64 callers do something n times in all, and says how long that took.
func callers(b *testing.B, n int64, do func(context.Context) error) time.Duration {
	b.Helper()
	begin := time.Now()
	var begun atomic.Int64
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for begun.Add(1) <= n {
				if err := do(b.Context()); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	return time.Since(begin)
}
