package bench

import (
	"runtime"
	"runtime/metrics"
	"time"
)

// WatchMemory measures every 20 milliseconds how much memory the Go runtime holds. The returned function ends this, and returns the largest
// value in bytes.
func WatchMemory() (most func() uint64) {
	stop, seen := make(chan struct{}), make(chan uint64)
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	go func() {
		var highest uint64
		for tick := time.NewTicker(20 * time.Millisecond); ; {
			metrics.Read(samples)
			highest = max(highest, samples[0].Value.Uint64()-samples[1].Value.Uint64())
			select {
			case <-tick.C:
			case <-stop:
				tick.Stop()
				seen <- highest
				return
			}
		}
	}()
	return func() uint64 {
		close(stop)
		return <-seen
	}
}

// allocated returns the bytes that this process has allocated in all, and the bytes that are live after a collection.
func allocated() (all, live uint64) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc, m.HeapAlloc
}
