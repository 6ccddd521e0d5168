package postgres

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"jurat/internal/pgtest"
)

// TestListensApart checks that the listening connection is not from the pool, and sends no cancel request when it
// ends.
func TestListensApart(t *testing.T) {
	url := pgtest.Database(t)
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	listens, err := listening(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	defer listens.Close()
	conn, err := listens.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	handler := listens.Config().ConnConfig.BuildContextWatcherHandler(conn.Conn().PgConn())
	if _, hangsUp := handler.(*pgconn.DeadlineContextWatcherHandler); !hangsUp || pool.Stat().AcquiredConns() != 0 {
		t.Errorf("%T, %d connections of the pool", handler, pool.Stat().AcquiredConns())
	}
}

// TestFewConnections checks that a pool with too few connections is refused with an error.
func TestFewConnections(t *testing.T) {
	config, err := pgxpool.ParseConfig(pgtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = leastConns - 1
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := Jobs(t.Context(), pool); err == nil || !strings.Contains(err.Error(), "pool_max_conns") {
		t.Errorf("%v", err)
	}
}
