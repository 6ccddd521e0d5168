package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// TestRetry checks that an error that will not go away is not retried, and that an operation with an unknown outcome
// is retried only if it may be done twice.
func TestRetry(t *testing.T) {
	refused := &pgconn.ConnectError{}
	for what, test := range map[string]struct {
		err         error
		once, often int // how often it is done where it may be done once, or often
		resets      int
	}{
		"nothing":          {nil, 1, 1, 0},
		"a deadlock":       {&pgconn.PgError{Code: "40P01"}, 3, 3, 0},
		"a conflict":       {&pgconn.PgError{Code: "40001"}, 3, 3, 0},
		"a lost answer":    {io.ErrUnexpectedEOF, 1, 3, 3},
		"a server's end":   {&pgconn.PgError{Code: "57P01"}, 1, 3, 3},
		"nobody there":     {refused, 3, 3, 3},
		"no such row":      {pgx.ErrNoRows, 1, 1, 0},
		"a broken rule":    {&pgconn.PgError{Code: "23505"}, 1, 1, 0},
		"no time left":     {context.DeadlineExceeded, 1, 1, 0},
		"a wrong password": {errors.Join(refused, &pgconn.PgError{Code: "28P01"}), 1, 1, 0},
	} {
		for _, may := range []struct {
			again func(error) bool
			times int
		}{{undone, test.once}, {undoneOrBroken, test.often}} {
			done, resets := 0, 0
			err := retry(t.Context(), func() { resets++ }, may.again, func() error {
				done++
				if test.err == nil {
					return nil
				}
				return fmt.Errorf("doing: %w", test.err)
			})
			if done != may.times || !errors.Is(err, test.err) || may.times == 3 && resets != test.resets {
				t.Errorf("%s: done %d times, want %d; forgotten %d times; %v", what, done, may.times, resets, err)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := 0
	if err := retry(ctx, func() {}, undoneOrBroken, func() error { done++; cancel(); return io.ErrUnexpectedEOF }); done != 1 || err == nil {
		t.Errorf("done %d times after the caller had given up, %v", done, err)
	}
	done = 0
	err := retry(t.Context(), func() {}, undone, func() error {
		if done++; done == 1 {
			return &pgconn.PgError{Code: "40P01"}
		}
		return nil
	})
	if done != 2 || err != nil {
		t.Errorf("done %d times, %v", done, err)
	}
}
