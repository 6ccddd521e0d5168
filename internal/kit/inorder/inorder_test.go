package inorder

import (
	"errors"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"jurat/internal/test/must"
)

// TestInOrder: results keep the order of the items, few items are held at a time, and every error ends all work.
func TestInOrder(t *testing.T) {
	bad := errors.New("bad")
	const n = 200
	for _, tt := range []struct {
		name           string
		nextAt, takeAt int // where an error is
		want           error
		taken          int
		weight         int
		most           int64 // held at once
	}{
		{"to the end", -1, -1, nil, n, 0, n/2 - 1},
		{"large things", -1, -1, nil, n, maxInWork / 2, 3}, // one item is read ahead
		{"things larger than may be", -1, -1, nil, n, 2 * maxInWork, 2},
		{"large things, and take fails", -1, 50, bad, 50, maxInWork, 2},
		{"next fails", 50, -1, bad, 50, 0, n/2 - 1},
		{"next fails at once", 0, -1, bad, 0, 0, 0},
		{"take fails", -1, 50, bad, 50, 0, n/2 - 1},
		{"take fails first", 120, 50, bad, 50, 0, n/2 - 1},
	} {
		var held, most atomic.Int64
		given, taken := 0, 0
		err := Do(func() (int, error) {
			if given == n {
				return 0, io.EOF
			}
			if given == tt.nextAt {
				return 0, bad
			}
			given++
			most.Store(max(most.Load(), held.Add(1)))
			return given - 1, nil
		}, func(int) int { return tt.weight }, func(i int) int {
			time.Sleep(time.Duration(rand.IntN(50)) * time.Microsecond)
			return i * i
		}, func(square int) error {
			if taken == tt.takeAt {
				return bad
			}
			held.Add(-1)
			must.Need(t, square == taken*taken, "%s: %d is taken as number %d", tt.name, square, taken)
			taken++
			return nil
		})
		must.Hold(t, errors.Is(err, tt.want) && taken == tt.taken, "%s: %v, %d taken", tt.name, err, taken)
		must.Hold(t, most.Load() <= tt.most, "%s: %d were held at once", tt.name, most.Load())
	}
}

// TestEach: all results come in the order of the items, and the first error of either function ends it.
func TestEach(t *testing.T) {
	bad := errors.New("bad")
	items := make([]int, 100)
	for i := range items {
		items[i] = i
	}
	for _, tt := range []struct{ workAt, takeAt, taken int }{{-1, -1, 100}, {40, -1, 40}, {-1, 40, 40}, {60, 40, 40}, {0, 0, 0}} {
		next := 0
		err := Each(items, func(i int) (int, error) {
			time.Sleep(time.Duration(i%3) * 100 * time.Microsecond)
			if i == tt.workAt {
				return 0, bad
			}
			return 2 * i, nil
		}, func(r int) error {
			if next == tt.takeAt {
				return bad
			}
			must.Hold(t, r == 2*next, "%+v: result %d is %d", tt, next, r)
			next++
			return nil
		})
		must.Hold(t, next == tt.taken && (err != nil) == (tt.taken < 100) && (err == nil || errors.Is(err, bad)), "%+v: %d taken, %v", tt, next, err)
	}
	must.Want(t, Each(nil, func(int) (int, error) { return 0, bad }, func(int) error { return bad }), nil)
}
