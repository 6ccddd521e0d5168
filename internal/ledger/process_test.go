package ledger_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"jurat/internal/ledger"
	"jurat/internal/ledger/fsck"
)

// sealerFolder, if set, makes this test binary a process that seals into that folder until it is killed, or
// sealerCount records. It prints the id of each acknowledged record.
const sealerFolder, sealerCount = "JURAT_TEST_SEALER", "JURAT_TEST_COUNT"

func TestMain(m *testing.M) {
	if f := folder(os.Getenv(sealerFolder)); f != "" {
		if err := f.sealOn(os.Getenv(sealerCount)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if f := folder(os.Getenv(loadFolder)); f != "" {
		fmt.Fprintln(os.Stderr, f.load())
		os.Exit(1)
	}
	if f := folder(os.Getenv(settlerFolder)); f != "" {
		fmt.Fprintln(os.Stderr, f.settleAndDie())
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func (f folder) sealOn(count string) error {
	var most int
	if _, err := fmt.Sscan(count, &most); err != nil {
		return err
	}
	ctx := context.Background()
	store, err := f.openStore(ctx)
	if err != nil {
		return err
	}
	l, err := ledger.Open(ctx, f.config(store))
	if err != nil {
		return err
	}
	defer l.Close()
	for n := range most {
		r, err := l.Seal(ctx, act(""), actor)
		if err != nil {
			return err
		}
		fmt.Println(r.Payload.RecordID) // the kernel has the line, also if this process dies
		if n%4 == 3 {
			if _, err := l.Checkpoint(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// sealer starts such a process.
func (f folder) sealer(t *testing.T, count int) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	child := exec.CommandContext(t.Context(), must(os.Executable()))
	child.Env = append(os.Environ(), sealerFolder+"="+string(f), sealerCount+"="+fmt.Sprint(count))
	child.Stderr = os.Stderr
	out := must(child.StdoutPipe())
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	return child, bufio.NewScanner(out)
}

// wantSound checks everything except the signatures: their keys ended with their processes.
func (f folder) wantSound(t *testing.T) {
	t.Helper()
	store := must(f.openStore(t.Context()))
	defer store.Close()
	found, err := fsck.Run(t.Context(), examined(f.config(store)), fsck.Options{})
	if err != nil {
		t.Fatal(err)
	}
	wantClean(t, found)
}

// TestKilled kills a process in the middle of its work, again and again.
func TestKilled(t *testing.T) { onBoth(t, testKilled) }

func testKilled(t *testing.T, f folder) {
	f.create(t).Close()
	var acknowledged []string
	for round := range 5 {
		child, lines := f.sealer(t, 1_000_000)
		for n := 0; lines.Scan(); n++ {
			acknowledged = append(acknowledged, lines.Text())
			if n == 7+13*round {
				if err := child.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := child.Wait(); err == nil {
			t.Fatal("the process ended by itself")
		}
		f.wantSound(t)
		l, err := f.open(t)
		if err != nil {
			t.Fatal(err)
		}
		acknowledged = append(acknowledged, seal(t, l, "").Payload.RecordID)
		wantOnce(t, l, acknowledged)
		l.Close()
	}
	if len(acknowledged) < 5*8 {
		t.Errorf("only %d records were acknowledged", len(acknowledged))
	}
}

func TestTwoProcesses(t *testing.T) { onBoth(t, testTwoProcesses) }

func testTwoProcesses(t *testing.T, f folder) {
	const each = 60
	l := f.create(t)
	first, firstLines := f.sealer(t, each)
	second, secondLines := f.sealer(t, each)
	var acknowledged []string
	for range each / 2 { // this process is a third opener
		acknowledged = append(acknowledged, seal(t, l, "").Payload.RecordID)
	}
	for _, lines := range []*bufio.Scanner{firstLines, secondLines} {
		for lines.Scan() {
			acknowledged = append(acknowledged, lines.Text())
		}
	}
	for _, child := range []*exec.Cmd{first, second} {
		if err := child.Wait(); err != nil {
			t.Error(err)
		}
	}
	if len(acknowledged) != 2*each+each/2 {
		t.Errorf("%d acknowledged", len(acknowledged))
	}
	wantOnce(t, l, acknowledged)
	f.wantSound(t)
	latest := must(l.Checkpoint(t.Context()))
	if outside := must(f.published().Load(t.Context())); outside != latest {
		t.Error("the last checkpoint is not the published one")
	}
}
