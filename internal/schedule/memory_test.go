package schedule_test

import (
	"sync"
	"testing"
	"time"

	"jurat/internal/schedule"
	"jurat/jurattest"
)

// TestTrialsHaveMemory: trials that do not fit into memory together run one after the other. A trial that waits for
// memory ends with the scheduler.
func TestTrialsHaveMemory(t *testing.T) {
	h, b := jurattest.New(t), &bench{delay: 2 * time.Millisecond}
	c := config(h, b)
	c.Parallel, c.Memory = 4, 3<<20>>1 // one and a half of the smallest
	d := open(t, c)
	var ids []string
	for range 4 {
		ids = append(ids, submit(t, d))
	}
	stop := run(t, d)
	for _, id := range ids {
		watched(t, d, id, 0)
	}
	if most := b.most.Load(); most > 3 {
		t.Errorf("%d answers at a time in one trial of three jurors", most)
	}
	stop()

	b = &bench{gate: make(chan struct{})}
	c = config(h, b)
	c.Parallel, c.Memory = 2, 1<<20
	d = open(t, c)
	submit(t, d)
	submit(t, d)
	stop = run(t, d)
	for b.asked.Load() < 3 || d.UnderWay() < 2 {
		time.Sleep(time.Millisecond)
	}
	go func() { time.Sleep(50 * time.Millisecond); close(b.gate) }()
	stop()
	if b.most.Load() > 3 {
		t.Errorf("%d answers at a time", b.most.Load())
	}
}

// TestWatchersReadOnce: watchers who come to a finished trial while it is being read cause each record to be read once.
func TestWatchersReadOnce(t *testing.T) {
	h, b := jurattest.New(t), &bench{}
	d := open(t, config(h, b))
	id := submit(t, d)
	run(t, d)
	watched(t, d, id, 0)
	begin, read := schedule.HoldReading(d, id)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { watched(t, d, id, 0) })
	}
	time.Sleep(300 * time.Millisecond) // so that all watchers have come
	begin()
	all.Wait()
	if n := read(); n != 15 {
		t.Errorf("50 watchers had %d records read", n)
	}
}
