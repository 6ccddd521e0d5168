//go:build unix

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// listen makes a Unix socket that this user reaches alone, or a group, too. A socket on which no process listens any more is replaced.
func listen(path, group string) (net.Listener, error) {
	if conn, err := net.Dial("unix", path); err == nil {
		conn.Close()
		return nil, fmt.Errorf("another program listens on %s", path)
	} else if errors.Is(err, syscall.ECONNREFUSED) {
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("replacing the socket: %w", err)
		}
	}
	before := syscall.Umask(0o177) // the socket is never open to others, not even for a moment
	listener, err := net.Listen("unix", path)
	syscall.Umask(before)
	if err != nil || group == "" {
		return listener, err
	}
	if err := share(path, group); err != nil {
		return nil, errors.Join(fmt.Errorf("--group %s: %w", group, err), listener.Close())
	}
	return listener, nil
}

func share(path, group string) error {
	g, err := user.LookupGroup(group)
	if err != nil {
		return err
	}
	id, err := strconv.Atoi(g.Gid)
	if err != nil {
		return err
	}
	if err := os.Chown(path, -1, id); err != nil {
		return err
	}
	return os.Chmod(path, 0o660)
}
