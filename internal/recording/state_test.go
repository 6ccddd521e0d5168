package recording

import (
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/internal/disktest"
	"jurat/internal/relay"
)

// TestLook: who looks at the folder sees what a recorder does, what waits and why, and what a dead one left. Looking changes nothing.
func TestLook(t *testing.T) {
	folder, log := t.TempDir(), &shelf{}
	look := func() Process {
		t.Helper()
		list, err := Look(t.Context(), folder)
		if err != nil || len(list) != 1 {
			t.Fatalf("%d processes, %v", len(list), err)
		}
		return list[0]
	}
	if list, err := Look(t.Context(), filepath.Join(folder, "none")); err != nil || len(list) != 0 {
		t.Errorf("a folder that is not there: %v, %v", list, err)
	}
	d := newDesk(t, folder, log, func(c *Config) { c.Mode, c.Agent = relay.Open, "mia" })
	for range 2 {
		if _, _, err := d.call(question(false, user("hello"))); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, func() bool { p := look(); return p.State.Sealed == 2 && p.Open == 0 })
	p := look()
	if !p.Running || p.About.Recorder != "witness" || p.About.Agent != "mia" || p.About.Mode != "open" || p.About.Vantage != evidence.Proxy || p.Open != 0 || p.State.Trouble != "" || p.JournalBytes == 0 {
		t.Errorf("%+v", p)
	}
	log.fail(errors.New("the log is out of order"))
	if _, _, err := d.call(question(false, user("hello"))); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return look().State.Waiting == 1 })
	if p := look(); p.Open != 1 || !strings.Contains(p.State.Trouble, "out of order") || p.Oldest.IsZero() {
		t.Errorf("%+v", p)
	}
	log.fail(nil)
	waitFor(t, func() bool { s := look().State; return s.Waiting == 0 && s.Sealed == 3 && s.Trouble == "" })

	body := &relay.Body{Bytes: 5, SHA256: evidence.DigestOf([]byte("hello"))}
	if _, err := d.recorder.Begin(t.Context(), &relay.Call{Speaks: relay.Models, ID: "c1", Began: time.Now(), Method: "POST", Path: "/x", Origin: "https://api.example", Vantage: evidence.Proxy, Header: http.Header{},
		Request: body}); err != nil {
		t.Fatal(err)
	}
	d.crash()
	before := disktest.Tree(t, folder)
	if p := look(); p.Running || p.Open != 1 || p.About.Recorder != "witness" {
		t.Errorf("a dead one: %+v", p)
	}
	if after := disktest.Tree(t, folder); !cmp.Equal(before, after) {
		t.Errorf("looking changed the folder: %v", cmp.Diff(before, after))
	}
	newDesk(t, folder, log, nil).end()
	if list, err := Look(t.Context(), folder); err != nil || len(list) != 0 {
		t.Errorf("when all is sealed: %v, %v", list, err)
	}
}
