package lab

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jurat/internal/must"
)

func open(t *testing.T, file string, ceiling, sealed int64) *fund {
	t.Helper()
	return must.Get(openFund(file, ceiling, sealed))(t)
}

func spent(f *fund) int64 { n, _ := f.state(); return n }

// TestFundAfterAKill: a call whose cost was never written counts with all that was set aside, and half a line is no call.
func TestFundAfterAKill(t *testing.T) {
	file := filepath.Join(t.TempDir(), "spending")
	f := open(t, file, 100, 0)
	settle := must.Get(f.Reserve(40))(t)
	settle(10)
	settle(10)
	if _, err := f.Reserve(30); err != nil { // and then the process is killed
		t.Fatal(err)
	}
	if _, err := f.Reserve(61); !errors.Is(err, ErrCeiling) {
		t.Errorf("10 are spent and 30 set aside of 100: %v", err)
	}
	if _, refused := f.state(); !refused {
		t.Error("it does not know that it refused")
	}
	half := must.Get(os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0))(t)
	if _, err := half.WriteString(`{"call":3,"asideMi`); err != nil || half.Close() != nil {
		t.Fatal(err)
	}
	again := open(t, file, 100, 5)
	if spent(again) != 40 {
		t.Errorf("spent %d, want 10 and the 30 that may have been paid", spent(again))
	}
	if _, err := again.Reserve(61); !errors.Is(err, ErrCeiling) {
		t.Errorf("%v", err)
	}
	settle = must.Get(again.Reserve(60))(t)
	settle(60)
	// Trials that were held without a ceiling are in no list, and count by their records.
	if third := open(t, file, 1000, 130); spent(third) != 130 {
		t.Errorf("spent %d, want 130", spent(third))
	}
	if fourth := open(t, file, 1000, 130); spent(fourth) != 130 {
		t.Errorf("spent %d, want 130 again", spent(fourth))
	}
}

func TestBrokenFund(t *testing.T) {
	for _, line := range []string{`{"call":0,"costMicroUSD":1}`, `{"call":1}`, `{"call":1,"costMicroUSD":-1}`, `{"call":1,"costMicroUSD":1,"asideMicroUSD":1}`, `{"x":1}`, `nonsense`} {
		file := filepath.Join(t.TempDir(), "spending")
		must.Do(t, os.WriteFile(file, []byte(line+"\n"), 0o644))
		if _, err := openFund(file, 100, 0); err == nil || !strings.Contains(err.Error(), "line 1") {
			t.Errorf("%s: %v", line, err)
		}
	}
}
