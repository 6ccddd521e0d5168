package installation_test

import (
	"bytes"
	"database/sql"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/find"
	"jurat/internal/installation"
)

// canary is the name of an agent that only expired records have.
const canary = "canary-agent-4711"

// hits returns how many records have a text.
func hits(t *testing.T, x *find.Index, text string) int {
	t.Helper()
	succeeds(t, x.Follow(t.Context(), nil))
	found := must(x.Records(t.Context(), &find.Records{Text: find.Fold(text)}, find.Scope{All: true}, nil))
	return len(found.Hits)
}

// seen seals what a recorder saw of an agent in the chain "talk", and that it missed a call of it.
func seen(t *testing.T, i *installation.Installation, agent string, at time.Time) {
	t.Helper()
	body := &observed.Body{Bytes: 2, SHA256: evidence.DigestOf([]byte("{}")), Type: "application/json", Kept: []byte("{}")}
	act := must(observed.Payload(observed.Act{Recorder: "tap", RequestID: "r", At: at, Began: at, ChainID: "talk", Agent: agent, Vantage: evidence.Proxy, Fidelity: evidence.ByBytes,
		Protocol: "openai.chat", Path: "/v1", Status: 200, Ended: evidence.Complete, Request: body, Response: body}))
	gap := observed.Event{Event: observed.Gap, Reason: "disk full", Missed: []observed.Missed{{Agent: agent, Calls: 3, Minute: evidence.FormatTime(at)}}}
	for _, p := range []evidence.Payload{act, must(gap.Payload("tap", evidence.FormatTime(at), "recorder/tap"))} {
		signers := must(i.Keys.Signers(t.Context(), evidence.RoleRecorder, "tap"))
		must(i.Ledger.Seal(t.Context(), must(evidence.NewDraft(p)), signers))
	}
}

// TestExpiredLeavesTheIndex: what expired is found no more, and neither its names nor its terms are left in the file, nor in pages that are
// free, while what else its chain has stays; what was sealed apart was never there.
func TestExpiredLeavesTheIndex(t *testing.T) {
	c, i, _, _, apart := aYearAgo(t)
	succeeds(t, i.Close())
	then := time.Now().AddDate(-1, 0, 0)
	past := c
	past.Now = func() time.Time { return then }
	i = open(t, past)
	seen(t, i, canary, then)
	succeeds(t, i.Close())
	i = open(t, c)
	seen(t, i, "courier", time.Now())
	path := filepath.Join(c.Dir, "find.db")
	x := must(find.Open(t.Context(), i.Ledger, path))
	defer x.Close()
	found(t, x, 2, 2)
	if found, err := x.Records(t.Context(), &find.Records{Record: apart.Payload.RecordID}, find.Scope{All: true}, nil); err != nil || len(found.Hits) != 1 {
		t.Errorf("the record with what is sealed apart: %v, %v", found, err)
	}
	if !bytes.Contains(bytesOf(t, path), []byte(canary)) {
		t.Error("the file does not have the name to begin with")
	}
	expire(t, i, "c-1", "recorder/tap", "talk")
	found(t, x, 1, 2)
	expire(t, i)
	found(t, x, 0, 1)
	if bytes.Contains(bytesOf(t, path), []byte(canary)) {
		t.Error("the file still has the name of an agent whose records have expired")
	}
	again := filepath.Join(t.TempDir(), "again.db")
	y := must(find.Open(t.Context(), i.Ledger, again))
	defer y.Close()
	succeeds(t, y.Follow(t.Context(), nil))
	if diff := cmp.Diff(inside(t, again), inside(t, path)); diff != "" {
		t.Errorf("the file has other things than one that is made again (-again +file):\n%s", diff)
	}
	freeIsEmpty(t, bytesOf(t, path))
}

func expire(t *testing.T, i *installation.Installation, except ...string) {
	t.Helper()
	o := expireOrder()
	o.Except = except
	if done, err := i.Expirer.Expire(t.Context(), o); err != nil || done.Records == 0 {
		t.Fatal(done, err)
	}
}

// found compares how many records are found with a text that only old records have, and how many agents the chain "talk" has, each of which a
// recorder saw once and missed three times.
func found(t *testing.T, x *find.Index, texts, agents int) {
	t.Helper()
	if n := hits(t, x, "of Anna"); n != texts {
		t.Errorf("%d records are found, want %d", n, texts)
	}
	r := must(x.Recording(t.Context(), "talk"))
	if r == nil || len(r.Agents) != agents || slices.Contains(r.Agents, canary) != (agents == 2) || r.Acts != int64(agents) || r.Records != int64(agents) || r.Missed != int64(3*agents) {
		t.Errorf("of the chain %+v is left, want %d agents", r, agents)
	}
}

// bytesOf returns the file of a database and its write-ahead log.
func bytesOf(t *testing.T, path string) []byte {
	t.Helper()
	return append(must(os.ReadFile(path)), must(os.ReadFile(path+"-wal"))...)
}

// inside counts what an index has: records, notes, sums of chains, terms, how often these occur, and marks of records that are removed and
// whose terms are still there.
func inside(t *testing.T, path string) (counts []int64) {
	t.Helper()
	db := must(sql.Open("sqlite", path))
	defer db.Close()
	db.SetMaxOpenConns(1) // the table of terms is of one connection
	must(db.Exec("CREATE VIRTUAL TABLE temp.terms USING fts5vocab(main, words, row)"))
	for _, what := range []string{"count(*) FROM records", "count(*) FROM notes", "count(*) FROM chains", "sum(length(sum)) FROM chains", "count(*) FROM words_docsize",
		"count(*) FROM temp.terms", "sum(doc) FROM temp.terms", "count(*) FROM words_data WHERE id >> 53"} {
		var n int64
		succeeds(t, db.QueryRow("SELECT "+what).Scan(&n))
		counts = append(counts, n)
	}
	return counts
}

// freeIsEmpty looks at the pages of a database that are free, as SQLite's file format has them: a list of trunks, each with numbers of
// others.
func freeIsEmpty(t *testing.T, doc []byte) {
	t.Helper()
	size := int(binary.BigEndian.Uint16(doc[16:]))
	page := func(number uint32) []byte { return doc[(int(number)-1)*size : int(number)*size] }
	free := 0
	for trunk := binary.BigEndian.Uint32(doc[32:]); trunk != 0; {
		at := page(trunk)
		n := int(binary.BigEndian.Uint32(at[4:]))
		for k := range n {
			free++
			if leaf := page(binary.BigEndian.Uint32(at[8+4*k:])); bytes.Trim(leaf, "\x00") != nil {
				t.Fatalf("a free page is not empty: %.60q", bytes.Trim(leaf, "\x00"))
			}
		}
		if rest := bytes.Trim(at[8+4*n:], "\x00"); len(rest) > 0 {
			t.Fatalf("a list of free pages has something behind it: %.60q", rest)
		}
		trunk = binary.BigEndian.Uint32(at)
	}
	if free == 0 {
		t.Error("no page is free, so nothing was compared")
	}
}
