package installation_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"jurat/evidence"
	"jurat/internal/installation"
	"jurat/internal/ledger/fsck"
)

// sealerFolder, if set, makes this test binary a process that seals apart into that folder until it is killed. It prints
// the id of each acknowledged record.
const sealerFolder = "JURAT_TEST_APART"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childFolder); dir != "" {
		fmt.Fprintln(os.Stderr, child(dir, os.Getenv(childTask)))
		os.Exit(1)
	}
	if dir := os.Getenv(rotatorFolder); dir != "" {
		fmt.Fprintln(os.Stderr, rotateAndDie(dir))
		os.Exit(1)
	}
	if dir := os.Getenv(expirerFolder); dir != "" {
		after, err := strconv.Atoi(os.Getenv("JURAT_TEST_STEP"))
		fmt.Fprintln(os.Stderr, errors.Join(err, expireAndDie(dir, after)))
		os.Exit(1)
	}
	if dir := os.Getenv(sealerFolder); dir != "" {
		fmt.Fprintln(os.Stderr, sealOn(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func sealOn(dir string) error {
	ctx := context.Background()
	i, err := installation.Open(ctx, installation.Config{Dir: dir})
	if err != nil {
		return err
	}
	for {
		d, err := evidence.NewDraft(note())
		if err != nil {
			return err
		}
		signers, err := i.Keys.Signers(ctx, d.Role(), d.Actor())
		if err != nil {
			return err
		}
		r, err := i.Ledger.Seal(ctx, d.SealingApart("/prompt"), signers)
		if err != nil {
			return err
		}
		fmt.Println(r.Payload.RecordID)
	}
}

// TestKilled kills two processes that seal apart, again and again. Every record in the log must disclose its text.
func TestKilled(t *testing.T) {
	c, i, _ := sealed(t)
	var acknowledged []string
	for round := range 3 {
		var children []*exec.Cmd
		var outputs []*bufio.Scanner
		for range 2 {
			child := exec.CommandContext(t.Context(), must(os.Executable()))
			child.Env = append(os.Environ(), sealerFolder+"="+c.Dir)
			child.Stderr = os.Stderr
			out, err := child.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := child.Start(); err != nil {
				t.Fatal(err)
			}
			children, outputs = append(children, child), append(outputs, bufio.NewScanner(out))
		}
		for n, lines := range outputs {
			for m := 0; lines.Scan(); m++ {
				acknowledged = append(acknowledged, lines.Text())
				if m == 3+5*round {
					if err := children[n].Process.Kill(); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := children[n].Wait(); err == nil {
				t.Fatal("the process ended by itself")
			}
		}
		damages, _, err := installation.Fsck(t.Context(), c, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range damages {
			if d.Kind != fsck.DamageOrphan {
				t.Error(d)
			}
		}
	}
	if len(acknowledged) < 30 {
		t.Errorf("only %d records were acknowledged", len(acknowledged))
	}
	for _, id := range acknowledged {
		r, err := i.Ledger.Record(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		wantDisclosed(t, i, r, "/prompt")
	}
}
