package jurat

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"jurat/internal/test/must"
)

// terminal opens a terminal. The test reads from screen what the program writes to program.
func terminal(t *testing.T) (screen, program *os.File) {
	t.Helper()
	screen = must.Get(os.OpenFile("/dev/ptmx", os.O_RDWR, 0))(t)
	t.Cleanup(func() { screen.Close() })
	must.Do(t, unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0))
	number := must.Get(unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN))(t)
	program = must.Get(os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0))(t)
	return screen, program
}
