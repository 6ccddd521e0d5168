package installation_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"jurat/internal/installation"
)

// TestClaim: one at a time, and nothing is left of a claim that was let go.
func TestClaim(t *testing.T) {
	i := &installation.Installation{Dir: t.TempDir()}
	release, err := i.Claim("trial-1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := i.Claim("trial-1"); !errors.Is(err, installation.ErrClaimed) {
		t.Errorf("claimed twice: %v", err)
	}
	if claimed, err := i.Claimed("trial-1"); !claimed || err != nil {
		t.Errorf("%t, %v", claimed, err)
	}
	other, err := i.Claim("trial-2")
	if err != nil {
		t.Fatalf("another trial: %v", err)
	}
	other()
	release()
	if claimed, err := i.Claimed("trial-1"); claimed || err != nil {
		t.Errorf("after it was let go: %t, %v", claimed, err)
	}
	if left, err := os.ReadDir(filepath.Join(i.Dir, "claims")); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// TestClaimAfterACrash: the file that a crash leaves claims nothing.
func TestClaimAfterACrash(t *testing.T) {
	i := &installation.Installation{Dir: t.TempDir()}
	if err := os.MkdirAll(filepath.Join(i.Dir, "claims"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(i.Dir, "claims", "trial-1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	release, err := i.Claim("trial-1")
	if err != nil {
		t.Fatal(err)
	}
	release()
}

// TestClaimIsExclusive: however many try again and again, letting go and removing files, no two have it at once.
func TestClaimIsExclusive(t *testing.T) {
	i := &installation.Installation{Dir: t.TempDir()}
	var inside, held atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 300 {
				release, err := i.Claim("trial-1")
				if errors.Is(err, installation.ErrClaimed) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if inside.Add(1) != 1 {
					t.Error("two have it at once")
				}
				held.Add(1)
				inside.Add(-1)
				release()
			}
		})
	}
	all.Wait()
	if held.Load() == 0 {
		t.Error("nobody ever had it")
	}
}

// TestClaimNames: an id that is no name of a file in the folder claims nothing.
func TestClaimNames(t *testing.T) {
	i := &installation.Installation{Dir: t.TempDir()}
	for _, id := range []string{"", ".", "..", "../trial-1", "a/b", ".hidden"} {
		if release, err := i.Claim(id); err == nil {
			release()
			t.Errorf("%q is claimed", id)
		}
	}
}

// TestVouch: what this installation's keys have not signed, it does not vouch for.
func TestVouch(t *testing.T) {
	config, mine := made(t)
	_, theirs := made(t)
	i := open(t, config)
	if err := i.Vouch(mine); err != nil {
		t.Error(err)
	}
	if err := i.Vouch(mine, theirs); err == nil {
		t.Error("it vouches for a record of another installation")
	}
	changed := *mine
	changed.Signatures = [][]byte{append([]byte{}, mine.Signatures[0]...)}
	changed.Signatures[0][9] ^= 1
	if err := i.Vouch(&changed); err == nil {
		t.Error("it vouches for a record whose signature is none")
	}
}

// TestAskingClaimsNothing: whoever claims a trial is not kept from it by those who ask whether anybody does.
func TestAskingClaimsNothing(t *testing.T) {
	i := &installation.Installation{Dir: t.TempDir()}
	var asking sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		asking.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					if _, err := i.Claimed("trial-1"); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	for range 2000 {
		release, err := i.Claim("trial-1")
		if err != nil {
			t.Errorf("nobody else claims it: %v", err)
			break
		}
		release()
	}
	close(stop)
	asking.Wait()
}
