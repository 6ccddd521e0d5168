package recording

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/must"
	"jurat/internal/relay"
)

// TestDamagedJournalOfOneThatDied: half lines inside a journal stop no start. Whole intents are sealed, the log says how many calls may be unknown
// and of whom, and the journal is kept. That holds in both modes, and if the next process dies while it says so.
func TestDamagedJournalOfOneThatDied(t *testing.T) {
	for _, mode := range []relay.Mode{relay.Closed, relay.Open} {
		for _, dies := range []bool{false, true} {
			folder, log := t.TempDir(), &shelf{}
			d := newDesk(t, folder, log, func(c *Config) { c.Mode = mode })
			if status, _, err := d.call(question(false, user("hello"))); err != nil || status != 200 {
				t.Fatal(status, err)
			}
			waitFor(t, func() bool { return len(log.acts(evidence.ObservedCall)) == 1 })
			known := log.acts(evidence.ObservedCall)[0].RecordID
			began := time.Date(2026, 11, 27, 10, 0, 30, 0, time.UTC)
			for n := range 2 {
				if _, err := d.recorder.Begin(t.Context(), &relay.Call{Speaks: relay.Models, ID: fmt.Sprint("c", n), Began: began, Method: "POST", Path: "/x", Origin: "https://api.example", Vantage: evidence.Proxy,
					Header: http.Header{}, Request: d.recorderBody(t, fmt.Sprint("call ", n))}); err != nil {
					t.Fatal(err)
				}
			}
			d.crash()
			d.recorder.journal.writer.Wait()
			damageJournal(t, d, known)
			journal := must.Get(os.ReadFile(d.recorder.journal.path))(t)
			var said bytes.Buffer
			again := func(c *Config) { c.Tell = slog.New(slog.NewTextHandler(&said, nil)) }
			if dies {
				diesSaying(t, folder, log)
			}
			for range 2 { // the second time there is nothing left to do
				newDesk(t, folder, log, again).end()
			}
			var lost []evidence.Digest
			for _, a := range log.acts(evidence.ObservedCall) {
				if a.Observed.Ended == evidence.LostInCrash {
					lost = append(lost, a.Observed.Request.SHA256)
				}
			}
			if want := []evidence.Digest{evidence.DigestOf([]byte("call 0")), evidence.DigestOf([]byte("call 1"))}; !slices.Equal(lost, want) {
				t.Errorf("lost: %v, want %v", lost, want)
			}
			gaps := log.events(t, observed.Gap)
			want := []observed.Missed{{Agent: "mia", Calls: 1, Minute: "2026-11-27T10:00:00.000Z"}, {Agent: "noa", Calls: 1, Minute: "2026-11-27T10:00:00.000Z"}}
			if len(gaps) != 1 || !slices.Equal(gaps[0].Missed, want) || !strings.Contains(gaps[0].Reason, "damaged lines") {
				t.Errorf("gaps: %+v, want one of %+v", gaps, want)
			}
			kept := filepath.Join(folder, damagedJournal+filepath.Base(d.recorder.own))
			if content, err := os.ReadFile(kept); err != nil || !bytes.Equal(content, journal) {
				t.Errorf("the damaged journal is not kept: %v", err)
			}
			if !strings.Contains(said.String(), "level=ERROR") || !strings.Contains(said.String(), kept) {
				t.Errorf("it says %q", said.String())
			}
			if left, err := Look(t.Context(), folder); err != nil || len(left) != 0 {
				t.Errorf("%v, %v", left, err)
			}
		}
	}
}

// damageJournal adds what failed writes leave: half a line of a call that is in the log, of one of another agent, of an end, and of nobody knows what.
func damageJournal(t *testing.T, d *desk, known string) {
	t.Helper()
	path := d.recorder.journal.path
	content := must.Get(os.ReadFile(path))(t)
	lines := strings.SplitAfter(strings.TrimSuffix(string(content), "\n"), "\n")
	lines[len(lines)-1] += "\n"
	last := len(lines) - 1
	lines[last] = `{"begin":{"record_id":"` + known + `","agent":"mia","cha` + lines[last] + `{"begin":{"record_id":"01a2","agent":"noa","ch` + "\n" + `{"end":"01a2` + "\n" + `{"beg` + "\n" + `{"end":"` + known + `"}` + "\n"
	must.Do(t, os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600))
	process, err := Look(t.Context(), filepath.Dir(d.recorder.own))
	if err != nil || len(process) != 1 || process[0].Damaged != 4 || process[0].Open != 2 {
		t.Errorf("%+v, %v", process, err)
	}
}

// diesSaying opens a recorder that dies when it has sealed what is damaged.
func diesSaying(t *testing.T, folder string, log *shelf) {
	t.Helper()
	dead := errors.New("killed")
	defer func() {
		if p := recover(); p != dead {
			t.Errorf("it did not die: %v", p)
		}
	}()
	_, err := Open(t.Context(), Config{Log: log, Name: "witness", Folder: folder, Agent: "mia", Vantage: evidence.Proxy, Version: "test", Configuration: evidence.DigestOf([]byte("settings")), Tell: slog.New(slog.DiscardHandler),
		after: func(step string) {
			if step == "damage sealed" {
				panic(dead)
			}
		}})
	t.Error("it lives", err)
}

// TestDamagedIntent: a damaged line that still looks whole, and of which there can be no record, stops no start either.
func TestDamagedIntent(t *testing.T) {
	for _, change := range [][2]string{{`"agent":"mia"`, `"agent":""`}, {`"agent":"mia"`, `"agent":"m\u0001a"`}, {`"chain":""`, `"chain":"\u0001"`}, {`"origin":"https`, `"origin":"\u0001https`}, {`"protocol":"`, `"protocol":"\u0001`},
		{`"vantage":"proxy"`, `"vantage":"pro8y"`}, {`"record_id":"0`, `"record_id":"x`}, {`"type":"observed_call"`, `"type":"observed_cbll"`}, {`"bytes":6`, `"bytes":-6`}} {
		folder, log := t.TempDir(), &shelf{}
		d := newDesk(t, folder, log, nil)
		for n := range 2 {
			if _, err := d.recorder.Begin(t.Context(), &relay.Call{Speaks: relay.Models, ID: fmt.Sprint("c", n), Began: time.Now(), Method: "POST", Path: "/x", Origin: "https://api.example", Vantage: evidence.Proxy,
				Header: http.Header{}, Request: d.recorderBody(t, fmt.Sprint("call ", n))}); err != nil {
				t.Fatal(err)
			}
		}
		d.crash()
		d.recorder.journal.writer.Wait()
		content := must.Get(os.ReadFile(d.recorder.journal.path))(t)
		damaged := strings.Replace(string(content), change[0], change[1], 1)
		if err := os.WriteFile(d.recorder.journal.path, []byte(damaged), 0o600); err != nil || damaged == string(content) {
			t.Fatal(err, string(content))
		}
		newDesk(t, folder, log, func(c *Config) { c.Tell = slog.New(slog.DiscardHandler) }).end()
		if lost := log.acts(evidence.ObservedCall); len(lost) != 1 || lost[0].Observed.Request.SHA256 != evidence.DigestOf([]byte("call 1")) {
			t.Errorf("%s: %d calls are sealed as lost", change[1], len(lost))
		}
		if gaps := log.events(t, observed.Gap); len(gaps) != 1 || len(gaps[0].Missed) != 1 || gaps[0].Missed[0].Calls != 1 {
			t.Errorf("%s: %+v", change[1], gaps)
		}
	}
}
