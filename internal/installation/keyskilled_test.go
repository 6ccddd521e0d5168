package installation_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"jurat/evidence"
	"jurat/internal/installation"
)

// rotatorFolder, if set, makes this test binary a process that rotates a key of the installation in that folder. It dies after the log has
// the event and before any file has changed.
const rotatorFolder = "JURAT_TEST_ROTATE"

func rotateAndDie(dir string) error {
	ctx := context.Background()
	i, err := installation.Open(ctx, installation.Config{Dir: dir})
	if err != nil {
		return err
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	i.After(func(string) {
		if self.Kill() == nil {
			select {} // the signal comes
		}
	})
	return i.Registrar.Rotate(ctx, evidence.RoleAgent, "a", "", nil, because)
}

// keyFiles are the names of the key files of agents.
func keyFiles(t *testing.T, dir string) []string {
	t.Helper()
	list := must(filepath.Glob(filepath.Join(dir, "keys", "agent", "*")))
	for n := range list {
		list[n] = filepath.Base(list[n])
	}
	slices.Sort(list)
	return list
}

// TestKilledBetweenLogAndFiles: if a process dies after one half of a rotation, the next process does the other half.
func TestKilledBetweenLogAndFiles(t *testing.T) {
	for name, pq := range map[string]bool{"one key": false, "two keys": true} {
		t.Run(name, func(t *testing.T) {
			c := installation.Config{Dir: filepath.Join(t.TempDir(), "data"), PostQuantum: pq}
			i := created(t, c)
			first := must(sealRequest(t, i, "r"))
			before := keyFiles(t, c.Dir)
			// Before the log has the event, a key is in a file and belongs to no actor.
			staged := must(i.Keys.Next(t.Context(), evidence.RoleAgent, "a", evidence.ES256, nil))
			succeeds(t, i.Close())
			i = must(installation.Open(t.Context(), c))
			if r := must(sealRequest(t, i, "r")); !slices.Equal(r.Payload.Signers, first.Payload.Signers) {
				t.Errorf("signed with %v, but the log knows only %v", r.Payload.Signers, first.Payload.Signers)
			}
			succeeds(t, i.Close())

			child := exec.CommandContext(t.Context(), must(os.Executable()))
			child.Env = append(os.Environ(), rotatorFolder+"="+c.Dir)
			out, err := child.CombinedOutput()
			if err == nil || child.ProcessState.Exited() {
				t.Fatalf("it was not killed: %v\n%s", err, out)
			}
			left := keyFiles(t, c.Dir)
			for _, file := range before {
				if !slices.Contains(left, file) {
					t.Errorf("%s was destroyed before the process was killed", file)
				}
			}
			if len(left) != 2*len(before) {
				t.Errorf("files after the crash: %v", left)
			}

			i = must(installation.Open(t.Context(), c))
			defer i.Close()
			r := must(sealRequest(t, i, "r"))
			if r.Payload.Signers[0].KeyID != staged.KeyID || len(r.Payload.Signers) != len(first.Payload.Signers) {
				t.Errorf("signed with %v, want the new key %s", r.Payload.Signers, staged.KeyID)
			}
			now := keyFiles(t, c.Dir)
			for _, file := range now {
				if slices.Contains(before, file) {
					t.Errorf("%s was not destroyed: %v", file, now)
				}
			}
			if len(now) != len(before) {
				t.Errorf("files: %v", now)
			}
			if err := i.Keys.Tidy(t.Context()); err != nil {
				t.Errorf("a second time: %v", err)
			}
			if again := keyFiles(t, c.Dir); !slices.Equal(again, now) {
				t.Errorf("a second time: %v, before %v", again, now)
			}
		})
	}
}
