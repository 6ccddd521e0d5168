package recording

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"jurat/internal/must"
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
				if err := j.begin(t.Context(), &intent{RecordID: id}, caller%2 == 0); err != nil {
					t.Error(err)
				}
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
	if err != nil || open != 160 {
		t.Errorf("%d calls without an end, %v: want 160", open, err)
	}
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
	if err := j.begin(t.Context(), &intent{RecordID: "refused"}, durable); err == nil {
		t.Error("a call began without an intent on disk")
	}
	if err := j.begin(t.Context(), &intent{RecordID: "refused too"}, durable); err == nil {
		t.Error("a call began while the journal is broken")
	}
	waitFor(t, idle)
	must.Do(t, j.repair())
	good.Close()
	must.Do(t, j.begin(t.Context(), &intent{RecordID: "after"}, durable))
	left, err := readWhole(path)
	ids := idsOf(left)
	slices.Sort(ids)
	if err != nil || !slices.Equal(ids, []string{"after", "before"}) {
		t.Errorf("%v, %v", ids, err)
	}
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
		if got := idsOf(left); err != nil || !slices.Equal(slices.Sorted(slices.Values(got)), ids) {
			t.Errorf("%v, %v; want %v", got, err, ids)
		}
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
	if left, err := j.close(); err != nil || left != 4 {
		t.Errorf("%d, %v", left, err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() > 100_000 { // the last long call may be open while the file is copied
		t.Errorf("%d bytes, %v", info.Size(), err)
	}
}
