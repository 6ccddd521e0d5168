//go:build !unix

package main

import (
	"errors"
	"net"
)

func listen(string, string) (net.Listener, error) {
	return nil, errors.New("--listen: this system has no Unix sockets whose access is restricted")
}
