package bench

import (
	"runtime"
	"runtime/metrics"
	"time"
)

// WatchMemory looks at what the Go runtime holds of the system, every 20 milliseconds until it is asked for the most that it has seen.
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

// allocated is what this process has asked for in all, and live what is left of it after a collection.
func allocated() (all, live uint64) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc, m.HeapAlloc
}
