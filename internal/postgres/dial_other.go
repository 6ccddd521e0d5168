//go:build !linux

package postgres

import (
	"net"
	"time"
)

// boundUnconfirmed leaves it to keepalive, and to asking the server, to end a connection.
func boundUnconfirmed(*net.TCPConn, time.Duration) error { return nil }
