package recording

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
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
	j, err := openJournal(path, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for caller := range 16 {
		all.Go(func() {
			for n := range 20 {
				id := fmt.Sprintf("%02d-%02d", caller, n)
				if err := j.begin(t.Context(), &intent{RecordID: id}, caller%2 == 0); err != nil {
					t.Error(err)
				}
				left, err := readJournal(path)
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
	if _, err := j.close(); err != nil {
		t.Fatal(err)
	}
	left, err := readJournal(path)
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
	j, err := openJournal(path, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.begin(t.Context(), &intent{RecordID: "stays"}, true); err != nil {
		t.Fatal(err)
	}
	long := string(make([]byte, 2000))
	for n := range 1000 { // each is 12 kB in JSON
		id := fmt.Sprint(n)
		if err := j.begin(t.Context(), &intent{RecordID: id, Path: long}, n%2 == 0); err != nil {
			t.Fatal(err)
		}
		j.end(id)
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() > rewriteAbove+100_000 {
		t.Errorf("the journal has %d bytes, %v", info.Size(), err)
	}
	left, err := readJournal(path)
	if err != nil || !slices.Contains(idsOf(left), "stays") {
		t.Errorf("left: %v, %v", idsOf(left), err)
	}
}

// TestTornJournal: a line that is not whole was never durable. Damage elsewhere is an error, as nobody knows what it hides.
func TestTornJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"begin":{"record_id":"a"}}` + "\n" + `{"begin":{"record_id":"b"}}` + "\n" + `{"end":"a"}` + "\n" + `{"begin":{"record_`)
	if left, err := readJournal(path); err != nil || !slices.Equal(idsOf(left), []string{"b"}) {
		t.Errorf("%v, %v", idsOf(left), err)
	}
	write(`{"begin":{"record_id":"a"}}` + "\n" + `{"begin":{"rec` + "\n" + `{"end":"a"}` + "\n")
	if left, err := readJournal(path); err == nil {
		t.Errorf("%v: want an error", idsOf(left))
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
	j, err := openJournal(path, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.begin(t.Context(), &intent{RecordID: "before"}, durable); err != nil {
		t.Fatal(err)
	}
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
	if err := j.repair(); err != nil {
		t.Fatal(err)
	}
	good.Close()
	if err := j.begin(t.Context(), &intent{RecordID: "after"}, durable); err != nil {
		t.Fatal(err)
	}
	left, err := readJournal(path)
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
	j, err := openJournal(path, func(step string) {
		if step == "synced" {
			<-slow
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b", "c"} { // the second comes while the first is being synced
		if err := j.begin(t.Context(), &intent{RecordID: id}, false); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := readJournal(path); err != nil || !slices.Equal(idsOf(left), []string{"a", "b", "c"}) {
		t.Errorf("%v, %v", idsOf(left), err)
	}
	close(slow)
	if err := j.begin(t.Context(), &intent{RecordID: "d"}, true); err != nil {
		t.Fatal(err)
	}
	if left, err := readJournal(path); err != nil || len(left) != 4 {
		t.Errorf("%v, %v", idsOf(left), err)
	}
}
