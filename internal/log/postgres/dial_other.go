//go:build !linux

package postgres

import (
	"net"
	"time"
)

// boundUnconfirmed does nothing: keepalive, and asking the server, end a dead connection.
func boundUnconfirmed(*net.TCPConn, time.Duration) error { return nil }
