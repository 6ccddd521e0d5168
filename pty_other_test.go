//go:build !linux

package jurat

import (
	"os"
	"testing"
)

func terminal(t *testing.T) (screen, program *os.File) {
	t.Skip("this test opens terminals, which works on Linux only")
	return nil, nil
}
