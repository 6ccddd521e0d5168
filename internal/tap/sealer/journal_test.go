package sealer

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/tap/relay"
	"jurat/internal/test/must"
	"jurat/internal/test/rig"
)

func idsOf(left []*intent) (ids []string) {
	for _, i := range left {
		ids = append(ids, i.RecordID)
	}
	return ids
}

// TestJournalKeepsWhatHasNoEnd: at every moment, the file has each call that has begun and not ended.
func TestJournalKeepsWhatHasNoEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j := must.Get(openJournal(path, func(string) {}))(t)
	var all sync.WaitGroup
	for caller := range 16 {
		all.Go(func() {
			for n := range 20 {
				id := fmt.Sprintf("%02d-%02d", caller, n)
				must.Want(t, j.begin(t.Context(), &intent{RecordID: id}, caller%2 == 0), nil)
				left, err := readWhole(path)
				if err != nil || !slices.Contains(idsOf(left), id) {
					t.Errorf("%s has begun, and the journal has %v, %v", id, idsOf(left), err)
				}
				if n%2 == 0 {
					j.end(id)
				}
			}
		})
	}
	all.Wait()
	must.Get(j.close())(t)
	left, err := readWhole(path)
	open := 0
	for _, id := range idsOf(left) {
		if (id[4]-'0')%2 == 1 {
			open++
		}
	}
	must.Hold(t, err == nil && open == 160, "%d calls without an end, %v: want 160", open, err)
}

// TestJournalIsWrittenAnew: the journal does not grow without end, and what is open stays in it.
func TestJournalIsWrittenAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j := must.Get(openJournal(path, func(string) {}))(t)
	must.Do(t, j.begin(t.Context(), &intent{RecordID: "stays"}, true))
	long := string(make([]byte, 2000))
	for n := range 1000 { // each is 12 kB in JSON
		id := fmt.Sprint(n)
		must.Do(t, j.begin(t.Context(), &intent{RecordID: id, Path: long}, n%2 == 0))
		j.end(id)
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() > rewriteAbove+100_000 {
		t.Errorf("the journal has %d bytes, %v", info.Size(), err)
	}
	left, err := readWhole(path)
	if err != nil || !slices.Contains(idsOf(left), "stays") {
		t.Errorf("left: %v, %v", idsOf(left), err)
	}
}

// readWhole reads a journal in which nothing is damaged.
func readWhole(path string) ([]*intent, error) {
	left, damaged, err := readJournal(path)
	if err == nil && len(damaged) > 0 {
		err = fmt.Errorf("it is damaged: %v", damaged)
	}
	return left, err
}

// TestTornJournal: a last line that is not whole was never durable. Damage elsewhere hides no whole line, and is told.
func TestTornJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	const a, b, endA = `{"begin":{"record_id":"a","agent":"mia","chain":"c","began":"2026-11-27T10:00:00Z"}}`, `{"begin":{"record_id":"b"}}`, `{"end":"a"}`
	began := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		text    string
		left    []string
		damaged []damaged
	}{
		{a + "\n" + b + "\n" + endA + "\n" + `{"begin":{"record_`, []string{"b"}, nil},
		{a + "\n" + b + "\n" + endA, []string{"a", "b"}, nil},
		{a + "\n" + `{"begin":{"rec` + "\n" + endA + "\n", nil, []damaged{{line: 2, after: began}}},
		{a + "\n" + `{"begin":{"rec` + b + "\n" + endA + "\n", []string{"b"}, []damaged{{line: 2, after: began}}},
		{a[:40] + endA + "\n" + b + "\n", []string{"b"}, []damaged{{line: 1, recordID: "a", agent: "mia"}}},
		{a[:40] + a[:20] + b + b + "\n", []string{"b"}, []damaged{{line: 1, recordID: "a", agent: "mia"}, {line: 1}}},
		{a + b + "\n", []string{"a", "b"}, nil}, // only the end of a line was lost
		{a + "\n" + endA[:6] + b + "\n", []string{"a", "b"}, []damaged{{line: 2, after: began}}},
		{a + "\n" + endA[:8] + b + "\n", []string{"a", "b"}, []damaged{{line: 2, ends: true, after: began}}},
		{a + "\n" + strings.Repeat("\x00", 5*maxLine) + "\n" + b + "\n", []string{"a", "b"}, []damaged{{line: 2, after: began}}},
		{a + "\n{}\n" + `{"begin":{},"end":"a"}` + "\n" + `{"begin":{"record_id":"c"},"more":1}` + "\n", []string{"a"}, []damaged{{line: 2, after: began}, {line: 3, after: began}, {line: 4, recordID: "c", after: began}}},
		{strings.Replace(a, "mia", `m\"record_id\":\"x\"{\"end\":\"a\"}`, 1)[:80] + "\n", nil, []damaged{{line: 1, recordID: "a", agent: `m"record_id":"x"{"end":"a"}`}}},
	} {
		must.Do(t, os.WriteFile(path, []byte(tt.text), 0o600))
		left, damaged, err := readJournal(path)
		if err != nil || !slices.Equal(idsOf(left), tt.left) || !slices.Equal(damaged, tt.damaged) {
			t.Errorf("%.200q: %q, %+v, %v; want %q, %+v", tt.text, idsOf(left), damaged, err, tt.left, tt.damaged)
		}
	}
}

// TestJournalOfAFullDisk: a call whose intent cannot be written does not begin, and leaves no intent. The journal works again when the disk does.
func TestJournalOfAFullDisk(t *testing.T) {
	for _, durable := range []bool{true, false} {
		t.Run(fmt.Sprint("durable: ", durable), func(t *testing.T) { journalOfAFullDisk(t, durable) })
	}
}

func journalOfAFullDisk(t *testing.T, durable bool) {
	path := filepath.Join(t.TempDir(), "journal")
	j := must.Get(openJournal(path, func(string) {}))(t)
	must.Do(t, j.begin(t.Context(), &intent{RecordID: "before"}, durable))
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("there is no /dev/full: ", err)
	}
	idle := func() bool {
		j.mu.Lock()
		defer j.mu.Unlock()
		return !j.writing
	}
	waitFor(t, idle)
	good := j.file
	j.file = full
	must.Say(t, j.begin(t.Context(), &intent{RecordID: "refused"}, durable), "", "a call began without an intent on disk")
	must.Say(t, j.begin(t.Context(), &intent{RecordID: "refused too"}, durable), "", "a call began while the journal is broken")
	waitFor(t, idle)
	must.Do(t, j.repair())
	good.Close()
	must.Do(t, j.begin(t.Context(), &intent{RecordID: "after"}, durable))
	left, err := readWhole(path)
	ids := idsOf(left)
	slices.Sort(ids)
	must.Hold(t, err == nil && slices.Equal(ids, []string{"after", "before"}), "%v, %v", ids, err)
}

// TestBeginsBeforeTheSync: a call in open mode waits for no disk, and its intent is in the file all the same.
func TestBeginsBeforeTheSync(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	slow := make(chan struct{})
	j := must.Get(openJournal(path, func(step string) {
		if step == "synced" {
			<-slow
		}
	}))(t)
	for _, id := range []string{"a", "b", "c"} { // the second comes while the first is being synced
		must.Do(t, j.begin(t.Context(), &intent{RecordID: id}, false))
	}
	if left, err := readWhole(path); err != nil || !slices.Equal(idsOf(left), []string{"a", "b", "c"}) {
		t.Errorf("%v, %v", idsOf(left), err)
	}
	close(slow)
	must.Do(t, j.begin(t.Context(), &intent{RecordID: "d"}, true))
	if left, err := readWhole(path); err != nil || len(left) != 4 {
		t.Errorf("%v, %v", idsOf(left), err)
	}
}

// TestCallsPassWhileTheJournalIsWrittenAnew: a call in open mode waits for no disk, however long the journal is, and at every moment its intent is in
// the file.
func TestCallsPassWhileTheJournalIsWrittenAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	slow, copying := make(chan struct{}), make(chan struct{}, 10)
	first := true
	j := must.Get(openJournal(path, func(step string) {
		if step == "copied" {
			if first {
				first = false
				return
			}
			copying <- struct{}{}
			<-slow
		}
	}))(t)
	begin := func(id string, size int) {
		t.Helper()
		must.Do(t, j.begin(t.Context(), &intent{RecordID: id, Path: strings.Repeat("x", size)}, false))
	}
	want := func(ids ...string) {
		t.Helper()
		left, err := readWhole(path)
		got := idsOf(left)
		must.Hold(t, err == nil && slices.Equal(slices.Sorted(slices.Values(got)), ids), "%v, %v; want %v", got, err, ids)
	}
	begin("before", 0)
	for n := range rewriteAbove/50_000 + 1 {
		id := fmt.Sprint("long ", n)
		begin(id, 50_000)
		j.end(id)
	}
	<-copying
	begin("meanwhile", 0)
	begin("once more", 0)
	want("before", "meanwhile", "once more")
	close(slow)
	waitFor(t, func() bool {
		j.mu.Lock()
		defer j.mu.Unlock()
		return !j.writing
	})
	begin("then", 0)
	want("before", "meanwhile", "once more", "then")
	must.Give(j.close())(t, 4)
	if info, err := os.Stat(path); err != nil || info.Size() > 100_000 { // the last long call may be open while the file is copied
		t.Errorf("%d bytes, %v", info.Size(), err)
	}
}

// TestDamagedJournalOfOneThatDied: half lines inside a journal stop no start. Whole intents are sealed, the log says how many calls may be unknown
// and of whom, and the journal is kept. That holds in both modes, and if the next process dies while it says so.
func TestDamagedJournalOfOneThatDied(t *testing.T) {
	for _, mode := range []relay.Mode{relay.Closed, relay.Open} {
		for _, dies := range []bool{false, true} {
			folder, log := t.TempDir(), &shelf{}
			d := newDesk(t, folder, log, func(c *Config) { c.Mode = mode })
			status, _, err := d.call(question(false, user("hello")))
			must.Need(t, err == nil && status == 200, "%v %v", status, err)
			waitFor(t, func() bool { return len(log.acts(evidence.ObservedCall)) == 1 })
			known := log.acts(evidence.ObservedCall)[0].RecordID
			began := time.Date(2026, 11, 27, 10, 0, 30, 0, time.UTC)
			for n := range 2 {
				d.begins(t, fmt.Sprint("c", n), began, bodyOfText(fmt.Sprint("call ", n)))
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
			must.Hold(t, len(gaps) == 1 && slices.Equal(gaps[0].Missed, want) && strings.Contains(gaps[0].Reason, "damaged lines"),
				"gaps: %+v, want one of %+v", gaps, want)
			kept := filepath.Join(folder, damagedJournal+filepath.Base(d.recorder.own))
			content, err := os.ReadFile(kept)
			must.Hold(t, err == nil && bytes.Equal(content, journal), "the damaged journal is not kept: %v", err)
			must.Hold(t, strings.Contains(said.String(), "level=ERROR") && strings.Contains(said.String(), kept), "it says %q", said.String())
			left, err := Look(t.Context(), folder)
			must.Hold(t, err == nil && len(left) == 0, "%v, %v", left, err)
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
	must.Hold(t, err == nil && len(process) == 1 && process[0].Damaged == 4 && process[0].Open == 2, "%+v, %v", process, err)
}

// diesSaying opens a recorder that dies when it has sealed what is damaged.
func diesSaying(t *testing.T, folder string, log *shelf) {
	t.Helper()
	dead := errors.New("killed")
	defer func() {
		p := recover()
		must.Hold(t, p == dead, "it did not die: %v", p)
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
			d.begins(t, fmt.Sprint("c", n), time.Now(), bodyOfText(fmt.Sprint("call ", n)))
		}
		d.crash()
		d.recorder.journal.writer.Wait()
		content := must.Get(os.ReadFile(d.recorder.journal.path))(t)
		damaged := strings.Replace(string(content), change[0], change[1], 1)
		err := os.WriteFile(d.recorder.journal.path, []byte(damaged), 0o600)
		must.Need(t, err == nil && damaged != string(content), "%v %v", err, string(content))
		newDesk(t, folder, log, func(c *Config) { c.Tell = slog.New(slog.DiscardHandler) }).end()
		if lost := log.acts(evidence.ObservedCall); len(lost) != 1 || lost[0].Observed.Request.SHA256 != evidence.DigestOf([]byte("call 1")) {
			t.Errorf("%s: %d calls are sealed as lost", change[1], len(lost))
		}
		if gaps := log.events(t, observed.Gap); len(gaps) != 1 || len(gaps[0].Missed) != 1 || gaps[0].Missed[0].Calls != 1 {
			t.Errorf("%s: %+v", change[1], gaps)
		}
	}
}

// TestLook: who looks at the folder sees what a recorder does, what waits and why, and what a dead one left. Looking changes nothing.
func TestLook(t *testing.T) {
	folder, log := t.TempDir(), &shelf{}
	look := func() Process {
		t.Helper()
		list, err := Look(t.Context(), folder)
		must.Need(t, err == nil && len(list) == 1, "%d processes, %v", len(list), err)
		return list[0]
	}
	list, err := Look(t.Context(), filepath.Join(folder, "none"))
	must.Hold(t, err == nil && len(list) == 0, "a folder that is not there: %v, %v", list, err)
	d := newDesk(t, folder, log, func(c *Config) { c.Mode, c.Agent = relay.Open, "mia" })
	for range 2 {
		d.passes(t, question(false, user("hello")))
	}
	waitFor(t, func() bool { p := look(); return p.State.Sealed == 2 && p.Open == 0 })
	p := look()
	if !p.Running || p.About.Recorder != "witness" || p.About.Agent != "mia" || p.About.Mode != "open" || p.About.Vantage != evidence.Proxy || p.Open != 0 || p.State.Trouble != "" || p.JournalBytes == 0 {
		t.Errorf("%+v", p)
	}
	log.fail(errors.New("the log is out of order"))
	d.passes(t, question(false, user("hello")))
	waitFor(t, func() bool { return look().State.Waiting == 1 })
	p = look()
	must.Hold(t, p.Open == 1 && strings.Contains(p.State.Trouble, "out of order") && !p.Oldest.IsZero(), "%+v", p)
	log.fail(nil)
	waitFor(t, func() bool { s := look().State; return s.Waiting == 0 && s.Sealed == 3 && s.Trouble == "" })

	body := &relay.Body{Bytes: 5, SHA256: evidence.DigestOf([]byte("hello"))}
	d.begins(t, "c1", time.Now(), body)
	d.crash()
	before := rig.Tree(t, folder)
	p = look()
	must.Hold(t, !p.Running && p.Open == 1 && p.About.Recorder == "witness", "a dead one: %+v", p)
	if after := rig.Tree(t, folder); !cmp.Equal(before, after) {
		t.Errorf("looking changed the folder: %v", cmp.Diff(before, after))
	}
	newDesk(t, folder, log, nil).end()
	list, err = Look(t.Context(), folder)
	must.Hold(t, err == nil && len(list) == 0, "when all is sealed: %v, %v", list, err)
}

// cutOff returns a text in an encoding, whose end is missing.
func cutOff(t *testing.T, encoding, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	var err error
	switch encoding {
	case "gzip":
		w := gzip.NewWriter(&out)
		if _, err = w.Write([]byte(text)); err == nil {
			err = w.Flush()
		}
	case "zstd":
		var w *zstd.Encoder
		if w, err = zstd.NewWriter(&out); err == nil {
			if _, err = w.Write([]byte(text)); err == nil {
				err = w.Flush()
			}
		}
	default:
		out.WriteString(text)
	}
	must.Do(t, err)
	return out.Bytes()
}

// TestAnswerThatACrashLeftIsMasked: of an answer of an agent, what was on disk is sealed without the secrets for notifications, however it is encoded. What
// cannot be read for that is not kept.
func TestAnswerThatACrashLeftIsMasked(t *testing.T) {
	const said, half = `{"jsonrpc":"2.0","result":{"id":"task 1","pushNotificationConfig":{"token":"s3cr3t","authentication":{"credentials":"hunt`, `er2"},"url":"https://a.exa`
	kept := func(s string) string {
		return strings.ReplaceAll(strings.ReplaceAll(s, "s3cr3t", "******"), "hunter2", "*******")
	}
	for name, tt := range map[string]struct {
		suffix string // of the file, as the relay names it
		file   []byte
		want   string // of the body; "": nothing
	}{
		"plain":                              {"", []byte(said + half), kept(said + half)},
		"plain, cut in a secret":             {"", []byte(said), strings.ReplaceAll(kept(said), "hunt", "****")},
		"plain, cut in a character":          {"", []byte(said + half + "\xc3"), kept(said + half + "\xc3")},
		"gzip":                               {".gzip", cutOff(t, "gzip", said+half), kept(said + half)},
		"zstd":                               {".zstd", cutOff(t, "zstd", said+half), kept(said + half)},
		"gzip, of which nothing can be read": {".gzip", []byte(said), ""},
		"an encoding that nobody knows":      {".unknown", cutOff(t, "gzip", said), ""},
	} {
		t.Run(name, func(t *testing.T) {
			folder, log := t.TempDir(), &shelf{}
			d := newDesk(t, folder, log, func(c *Config) { c.InTheRecord = true })
			if _, err := d.recorder.Begin(t.Context(), &relay.Call{Speaks: relay.A2A, ID: "c1", Began: time.Now(), Method: "POST", Path: "/", Origin: "https://api.example", Vantage: evidence.Proxy,
				Header: http.Header{"A2a-Version": {"1.0"}}, Request: bodyOfText("hello")}); err != nil {
				t.Fatal(err)
			}
			d.crash()
			must.Do(t, os.WriteFile(filepath.Join(d.recorder.Spool(), "c1.response"+tt.suffix), tt.file, 0o600))
			newDesk(t, folder, log, nil).end()
			lost := log.acts(evidence.ObservedMessage)
			if len(lost) != 1 || lost[0].Observed.Ended != evidence.LostInCrash || lost[0].Observed.Response == nil || lost[0].Observed.Response.SHA256 != evidence.DigestOf(tt.file) {
				t.Fatalf("%d records", len(lost))
			}
			var body []byte
			if raw := lost[0].ResponseBody; raw != nil {
				pieces, err := evidence.ParseBody(raw)
				must.Need(t, err == nil && len(pieces) == 1, "%s: %v", raw, err)
				body = pieces[0].Own
			}
			must.Equal(t, string(body), tt.want)
			missing := strings.Join(lost[0].Observed.Missing, "\n")
			if !strings.Contains(missing, "after the part that was on disk") || tt.want == "" && !strings.Contains(missing, unmasked) || tt.want != "" && !strings.Contains(missing, "were overwritten") {
				t.Errorf("missing: %s", missing)
			}
		})
	}
}
