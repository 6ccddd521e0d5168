//go:build unix

package bench

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/log/installation"
	"jurat/internal/test/must"
	"jurat/timestamp"
)

// TestMain gives Go's runtime what 'jurat serve' gives it: two more threads, since two wait for the disk most of the time, and a heap that is not collected
// a hundred times a second.
func TestMain(m *testing.M) {
	spare := make([]byte, 96<<20)
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 2)
	code := m.Run()
	runtime.KeepAlive(spare)
	os.Exit(code)
}

// of reports a figure, and what it is of its limit. Of a rate 1 is the best there can be, and less is worse; of a time or a size more is worse.
func of(b *testing.B, name string, value, limit float64) {
	b.Helper()
	b.ReportMetric(value, name)
	b.ReportMetric(value/limit, name+":limit")
}

// A meter counts operations of many concurrent workers, over several slices of time.
type meter struct {
	n        int64
	in, used time.Duration
}

func (m *meter) perSecond() float64 { return float64(m.n) / m.in.Seconds() }

// cpu returns the processor time of one operation in microseconds.
func (m *meter) cpu() float64 { return microseconds(m.used) / float64(m.n) }

// during lets workers repeat an operation for a slice of time, each at least once. The time counts until the last worker has finished.
func (m *meter) during(b *testing.B, slice time.Duration, workers int, do func(context.Context) error) {
	b.Helper()
	var n atomic.Int64
	var all sync.WaitGroup
	begin, used := time.Now(), processorTime()
	for range workers {
		all.Go(func() {
			for first := true; first || time.Since(begin) < slice; first = false {
				if err := do(b.Context()); err != nil {
					b.Error(err)
					return
				}
				n.Add(1)
			}
		})
	}
	all.Wait()
	m.n, m.in, m.used = m.n+n.Load(), m.in+time.Since(begin), m.used+processorTime()-used
	if b.Failed() {
		b.FailNow()
	}
}

// times lets workers perform an operation n times in all.
func times(b *testing.B, n int64, workers int, do func(context.Context) error) {
	b.Helper()
	var begun atomic.Int64
	new(meter).during(b, 0, workers, func(ctx context.Context) error {
		for begun.Add(1) <= n {
			if err := do(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// processorTime returns the time that this process has used on all cores.
func processorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// timings are the durations of an operation that is repeated alone.
type timings []time.Duration

func (t *timings) took(b *testing.B, do func(context.Context) error) {
	b.Helper()
	begin := time.Now()
	must.Do(b, do(b.Context()))
	*t = append(*t, time.Since(begin))
}

// median returns the median in microseconds.
func (t timings) median() float64 { return microseconds(slices.Sorted(slices.Values(t))[len(t)/2]) }

func microseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// inUse returns the bytes of heap and stacks that are in use after a collection.
func inUse() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}

// held returns the bytes that the Go runtime holds.
func held() float64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return float64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}

// watchMemory looks every 20 milliseconds how much memory the Go runtime holds. The returned function ends this, and returns the most.
func watchMemory() (most func() float64) {
	stop, seen := make(chan struct{}), make(chan float64)
	go func() {
		highest := held()
		for {
			select {
			case <-time.After(20 * time.Millisecond):
				highest = max(highest, held())
			case <-stop:
				seen <- max(highest, held())
				return
			}
		}
	}()
	return func() float64 {
		close(stop)
		return <-seen
	}
}

// A house is an installation like that of a user: on disk, durable, with its own authority.
type house struct {
	*installation.Installation
	config  installation.Config
	draft   *evidence.Draft // its sealed payload has some 2 KiB
	signers []evidence.Signer
}

const agent = "agent-7"

func furnish(b *testing.B) *house {
	b.Helper()
	return furnishIn(b, installation.Config{Dir: filepath.Join(b.TempDir(), "data")})
}

func furnishIn(b *testing.B, config installation.Config) *house {
	b.Helper()
	must.Do(b, installation.Create(b.Context(), config))
	return open(b, config)
}

func open(b *testing.B, config installation.Config) *house {
	b.Helper()
	i := must.Get(installation.Open(b.Context(), config))(b)
	h := &house{Installation: i, config: config}
	b.Cleanup(func() {
		must.Want(b, h.close(), nil)
	})
	h.signers = must.Get(i.Keys.Signers(b.Context(), evidence.RoleAgent, agent))(b)
	h.draft = must.Get(evidence.ParseDraft(fmt.Appendf(nil, `{"agent_id":%q,"request_id":"req-1","timestamp":"2026-01-31T16:15:00Z","model":"m","model_version":"1",`+
		`"parameters":{"temperature":0.5},"prompt":"May I send the parcel?","response":%q}`, agent, strings.Repeat("It is 17 km away. ", 92))))(b)
	return h
}

// close closes the installation, once.
func (h *house) close() (err error) {
	if h.Installation != nil {
		err = h.Close()
		h.Installation = nil
	}
	return err
}

func (h *house) seal(ctx context.Context) error {
	_, err := h.Ledger.Seal(ctx, h.draft, h.signers)
	return err
}

// bare are the basic operations that every record needs, each alone.
type bare struct {
	h         *house
	authority *timestamp.Authority
	file      *os.File
}

func newBare(b *testing.B, h *house) *bare {
	b.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(b)
	now := time.Now().UTC().Truncate(time.Second)
	names := timestamp.CertificateConfig{Key: key, Serial: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0)}
	root := must.Get(timestamp.NewRoot(names))(b)
	certificate := must.Get(timestamp.NewCertificate(names, root, key))(b)
	alone := &bare{h: h, authority: must.Get(timestamp.NewAuthority(timestamp.AuthorityConfig{Key: key, Certificate: certificate, Chain: []*x509.Certificate{root}}))(b),
		file: must.Get(os.Create(filepath.Join(b.TempDir(), "page")))(b)}
	b.Cleanup(func() { alone.file.Close() })
	return alone
}

// signatures makes the two signatures that a record and its token have.
func (a *bare) signatures(context.Context) error {
	for range 2 {
		if _, err := a.h.signers[0].Sign(make([]byte, 2048)); err != nil {
			return err
		}
	}
	return nil
}

// sealed makes a record with its token, without a log.
func (a *bare) sealed(context.Context) error {
	id, err := evidence.NewRecordID(time.Now(), rand.Reader)
	if err != nil {
		return err
	}
	record, err := a.h.draft.Seal(evidence.Sealing{Signers: a.h.signers, Time: time.Now(), RecordID: id})
	if err != nil {
		return err
	}
	_, err = a.authority.Issue(&timestamp.Request{Imprint: record.Imprint(), CertReq: true})
	return err
}

// fsync writes a page and syncs it.
func (a *bare) fsync(context.Context) error {
	if _, err := a.file.Write(make([]byte, 4096)); err != nil {
		return err
	}
	return a.file.Sync()
}
