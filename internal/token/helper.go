package token

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Helper says where a helper is: a program to be started, or a Unix socket that one listens on. Exactly one is set.
type Helper struct {
	Program []string `json:"program,omitzero"` // name and arguments
	Socket  string   `json:"socket,omitzero"`  // path
}

// programName begins the name of every program that is started as a helper. So a key file from elsewhere names no shell.
const programName = "jurat-token"

// Check refuses what is no helper.
func (h Helper) Check() error {
	switch {
	case (len(h.Program) == 0) == (h.Socket == ""):
		return errors.New("a helper is either a program or a socket")
	case h.Socket != "" && (!filepath.IsAbs(h.Socket) || strings.ContainsRune(h.Socket, 0)):
		return fmt.Errorf("the helper's socket %q is no absolute path", h.Socket)
	case h.Socket != "":
		return nil
	}
	name := filepath.Base(h.Program[0])
	if name != programName && !strings.HasPrefix(name, programName+"-") {
		return fmt.Errorf("the helper's program is %q; a helper is called %s, or %s- and something more", h.Program[0], programName, programName)
	}
	return nil
}

func (h Helper) equal(other Helper) bool {
	return h.Socket == other.Socket && slices.Equal(h.Program, other.Program)
}

// String writes the helper as ParseHelper reads it, as far as no argument has blanks.
func (h Helper) String() string {
	if h.Socket != "" {
		return "unix:" + h.Socket
	}
	return strings.Join(h.Program, " ")
}

// ParseHelper reads unix:PATH, or a program and its arguments, separated by blanks. It returns an error for what
// Check refuses.
func ParseHelper(text string) (Helper, error) {
	h := Helper{Program: strings.Fields(text)}
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		h = Helper{Socket: path}
	}
	return h, h.Check()
}

func (h Helper) connect(ctx context.Context, first func()) (*conn, error) {
	if h.Socket != "" {
		var d net.Dialer
		c, err := d.DialContext(ctx, "unix", h.Socket)
		if err != nil {
			return nil, fmt.Errorf("reaching the helper: %w", err)
		}
		return newConn(c, c, c.Close, first), nil
	}
	return h.start(first)
}

// start starts the program as a child, which ends when its standard input does.
func (h Helper) start(first func()) (*conn, error) {
	command := exec.Command(h.Program[0], h.Program[1:]...)
	said := &tail{}
	command.Stderr = said
	command.WaitDelay = time.Second // for a grandchild that holds standard error open
	in, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the helper: %w", err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the helper: %w", err)
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting the helper: %w", err)
	}
	return newConn(out, in, func() error { return stop(command, in, said) }, first), nil
}

// stop ends a child: by closing its input, and after five seconds by force. A child that ends well says nothing.
func stop(command *exec.Cmd, in io.Closer, said *tail) error {
	in.Close() // fails if it is closed
	force := time.AfterFunc(5*time.Second, func() { command.Process.Kill() })
	defer force.Stop()
	if err := command.Wait(); err != nil {
		return fmt.Errorf("the helper %s ended: %w%s", command.Path, err, said)
	}
	return nil
}

// A tail keeps the last bytes of what a child writes to standard error.
type tail struct {
	mu   sync.Mutex // held while the text changes
	text []byte
}

func (t *tail) Write(text []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, text...)
	t.text = t.text[max(0, len(t.text)-maxText):]
	return len(text), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.text) == 0 {
		return ""
	}
	return fmt.Sprintf(", and said %q", strings.TrimSpace(string(t.text)))
}
