package installation_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/log/installation"
	"jurat/internal/log/ledger"
	"jurat/internal/log/ledger/fsck"
	"jurat/internal/test/must"
	"jurat/internal/test/rig"
	"jurat/internal/web/find"
	"jurat/verify"
	"jurat/verify/trust"
)

// made returns a closed installation with one record.
func made(t *testing.T) (installation.Config, *evidence.Record) {
	t.Helper()
	c := installation.Config{Dir: filepath.Join(t.TempDir(), "data")}
	i, created, err := installation.OpenOrCreate(t.Context(), c)
	must.Do(t, err)
	must.Need(t, created, "there was one already")
	r := seal(t, i)
	must.Do(t, i.Close())
	return c, r
}

// wantError reports an error that is not the one that is wanted.
func wantError(t *testing.T, what string, want, got error) {
	t.Helper()
	must.Hold(t, errors.Is(got, want), "%s: %v, want %v", what, got, want)
}

func errorOf[T any](_ T, err error) error { return err }

// anew makes an installation in a new folder, and opens it.
func anew(t *testing.T) (installation.Config, *installation.Installation) {
	t.Helper()
	c := installation.Config{Dir: filepath.Join(t.TempDir(), "data")}
	return c, created(t, c)
}

// created opens an installation that may have to be made.
func created(t *testing.T, c installation.Config) *installation.Installation {
	t.Helper()
	i, _, err := installation.OpenOrCreate(t.Context(), c)
	must.Do(t, err)
	return i
}

func draft(t *testing.T) *evidence.Draft {
	t.Helper()
	d := get(evidence.NewDraft(evidence.Payload{AgentID: "courier", RequestID: "r-1", Timestamp: "2026-01-31T16:15:00Z",
		Model: "m", ModelVersion: "1", Prompt: jsontext.Value(`"p"`), Response: jsontext.Value(`"r"`), Parameters: jsontext.Value(`{}`)}))
	return d
}

func seal(t *testing.T, i *installation.Installation) *evidence.Record {
	t.Helper()
	d := draft(t)
	signers := get(i.Keys.Signers(t.Context(), d.Role(), d.Actor()))
	r := get(i.Ledger.Seal(t.Context(), d, signers))
	return get(i.Ledger.ProveOne(t.Context(), r))
}

func open(t *testing.T, c installation.Config) *installation.Installation {
	t.Helper()
	i := get(installation.Open(t.Context(), c))
	t.Cleanup(func() { wantError(t, "error", nil, i.Close()) })
	return i
}

func TestCreateInPlaces(t *testing.T) {
	places := map[string]func(t *testing.T, root string) string{
		"a new folder":            func(_ *testing.T, root string) string { return filepath.Join(root, "data") },
		"below a new folder":      func(_ *testing.T, root string) string { return filepath.Join(root, "a", "b", "data") },
		"an empty folder":         func(t *testing.T, root string) string { return mkdir(t, filepath.Join(root, "data")) },
		"with a slash at the end": func(_ *testing.T, root string) string { return filepath.Join(root, "data") + "/" },
		"a link to an empty folder": func(t *testing.T, root string) string {
			link := filepath.Join(root, "link")
			must.Do(t, os.Symlink(mkdir(t, filepath.Join(root, "real")), link))
			return link
		},
	}
	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			c := installation.Config{Dir: place(t, t.TempDir())}
			must.Do(t, installation.Create(t.Context(), c))
			open(t, c)
		})
	}
}

func mkdir(t *testing.T, dir string) string {
	t.Helper()
	must.Do(t, os.Mkdir(dir, 0o755))
	return dir
}

func TestCreateRefusesWhatIsThere(t *testing.T) {
	root := t.TempDir()
	full := mkdir(t, filepath.Join(root, "full"))
	file := filepath.Join(full, "file")
	must.Do(t, os.WriteFile(file, []byte("mine"), 0o600))
	before := rig.Tree(t, root)
	for _, dir := range []string{full, file} {
		err := installation.Create(t.Context(), installation.Config{Dir: dir})
		must.Hold(t, err != nil && strings.Contains(err.Error(), dir), "error %v, want one that names %s", err, dir)
	}
	must.Equal(t, cmp.Diff(before, rig.Tree(t, root)), "", "something was changed (-before +after):\n")
}

func TestCreateThatFailsLeavesNothing(t *testing.T) {
	root := t.TempDir()
	ended, end := context.WithCancel(t.Context())
	end()
	err := installation.Create(ended, installation.Config{Dir: filepath.Join(root, "data")})
	must.Need(t, err != nil, "no error")
	must.Equal(t, cmp.Diff(map[string]fs.FileMode{".": fs.ModeDir | 0o755}, rig.Tree(t, root)), "", "left over (-want +got):\n")
}

func TestCreateConcurrently(t *testing.T) {
	root := t.TempDir()
	c := installation.Config{Dir: filepath.Join(root, "data")}
	const creators = 4
	errs := make([]error, creators)
	var wg sync.WaitGroup
	for n := range creators {
		wg.Go(func() { errs[n] = installation.Create(t.Context(), c) })
	}
	wg.Wait()
	made := 0
	for _, err := range errs {
		if err == nil {
			made++
		}
	}
	must.Hold(t, made == 1, "%d of %d made one: %v", made, creators, errs)
	entries, err := os.ReadDir(root)
	must.Hold(t, err == nil && len(entries) == 1, "found %v (%v), want the installation alone", entries, err)
	seal(t, open(t, c))
}

func TestOpenOrCreateConcurrently(t *testing.T) {
	c := installation.Config{Dir: filepath.Join(t.TempDir(), "data")}
	var wg sync.WaitGroup
	var mu sync.Mutex // held while logs is read or written
	logs := map[string]bool{}
	for range 4 {
		wg.Go(func() {
			i, _, err := installation.OpenOrCreate(t.Context(), c)
			if err != nil {
				t.Error(err)
				return
			}
			defer i.Close()
			mu.Lock()
			defer mu.Unlock()
			logs[i.Ledger.Origin()] = true
		})
	}
	wg.Wait()
	must.Hold(t, len(logs) == 1, "found the logs %v, want one", logs)
}

func TestOpenWhereNoneIs(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{root, filepath.Join(root, "nowhere")} {
		must.Fail(t, installation.ErrNone, dir)(installation.Open(t.Context(), installation.Config{Dir: dir}))
		_, _, err := installation.Fsck(t.Context(), installation.Config{Dir: dir}, nil)
		must.Hold(t, errors.Is(err, installation.ErrNone), "fsck %s: %v, want ErrNone", dir, err)
	}
	must.Equal(t, cmp.Diff(map[string]fs.FileMode{".": fs.ModeDir | 0o755}, rig.Tree(t, root)), "", "something was made:\n")
}

// If one of these parts is lost or damaged, the installation does not open.
var parts = []string{"jurat.db", "log.key", "authority/root.pem", "authority/authority.pem", "authority/authority.key"}

func TestOpenNamesWhatIsMissing(t *testing.T) {
	for _, part := range append([]string{"keys", "authority"}, parts...) {
		t.Run(part, func(t *testing.T) {
			c, _ := made(t)
			must.Do(t, os.RemoveAll(filepath.Join(c.Dir, part)))
			staysShut(t, c, part)
		})
	}
}

func TestOpenNamesWhatIsGarbled(t *testing.T) {
	for _, part := range append([]string{"checkpoint"}, parts...) {
		for name, text := range map[string]string{"empty": "", "garbage": "not what belongs here\n"} {
			if part == "checkpoint" && text == "" {
				continue // as if there were none: see TestOpenWithoutPublishedCheckpoint
			}
			t.Run(part+" "+name, func(t *testing.T) {
				c, _ := made(t)
				must.Do(t, os.WriteFile(filepath.Join(c.Dir, part), []byte(text), 0o600))
				staysShut(t, c, part)
			})
		}
	}
}

// staysShut expects an error that names the part and is not ErrNone. Nothing may be created or changed.
func staysShut(t *testing.T, c installation.Config, part string) {
	t.Helper()
	before := rig.Tree(t, c.Dir)
	for range 2 {
		i, _, err := installation.OpenOrCreate(t.Context(), c)
		if err == nil {
			i.Close()
			t.Fatal("it opens")
		}
		must.Hold(t, strings.Contains(err.Error(), filepath.Join(c.Dir, part)) && !errors.Is(err, installation.ErrNone),
			"error %q, want one that names %s", err, part)
	}
	after := rig.Tree(t, c.Dir)
	for _, beside := range []string{"jurat.db-shm", "jurat.db-wal"} { // SQLite's own files
		delete(before, beside)
		delete(after, beside)
	}
	must.Equal(t, cmp.Diff(before, after), "", "something was made (-before +after):\n")
}

// Without the published checkpoint, it is unknown whether the database was set back. The log can be read, but accepts no
// records.
func TestOpenWithoutPublishedCheckpoint(t *testing.T) {
	c, r := made(t)
	must.Do(t, os.Remove(filepath.Join(c.Dir, "checkpoint")))
	i := open(t, c)
	must.Fail(t, nil, "reading")(i.Ledger.Record(t.Context(), r.Payload.RecordID))
	wantError(t, "CanAppend", ledger.ErrBehind, i.Ledger.CanAppend(t.Context()))
}

func TestGarbledKeyIsNamed(t *testing.T) {
	c, _ := made(t)
	files, err := filepath.Glob(filepath.Join(c.Dir, "keys", "agent", "*.key"))
	must.Need(t, err == nil && len(files) == 1, "keys: %v, %v", files, err)
	must.Do(t, os.WriteFile(files[0], []byte("{}\n"), 0o600))
	i := open(t, c)
	must.Refuse(t, files[0], "trust")(i.Trust(t.Context()))
	must.Refuse(t, files[0], "signer")(i.Keys.Signers(t.Context(), evidence.RoleAgent, "courier"))
}

func TestModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes there")
	}
	c, _ := made(t)
	for name, mode := range rig.Tree(t, c.Dir) {
		want := fs.FileMode(0o600)
		switch {
		case mode.IsDir():
			want = fs.ModeDir | 0o700
		case name == "checkpoint":
			want = 0o644 // in a folder that is its owner's alone
		}
		must.Hold(t, mode == want, "%s has mode %v, want %v", name, mode, want)
	}
}

func TestOpenRefusesKeysThatOthersCanRead(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes there")
	}
	for _, part := range []string{"log.key", "authority/authority.key"} {
		c, _ := made(t)
		must.Do(t, os.Chmod(filepath.Join(c.Dir, part), 0o640))
		staysShut(t, c, part)
	}
}

func TestTrust(t *testing.T) {
	c, r := made(t)
	i := open(t, c)
	trusted := get(i.Trust(t.Context()))
	doc := get(trusted.Marshal())
	parsed := get(trust.Parse(doc))
	again := get(parsed.Marshal())
	must.Equal(t, cmp.Diff(string(doc), string(again)), "", "parsed and written again (-first +second):\n")
	for _, key := range parsed.Keys {
		must.Hold(t, key.Custody == trust.ByOperator, "key of %s: custody %s: this installation keeps it", key.Name, key.Custody)
	}
	report := verify.Record(r, verify.Options{Trust: parsed})
	must.Hold(t, report.Outcome == verify.Proved, "outcome %s: %+v", report.Outcome, report.Guarantees)
	must.Equal(t, report.Times[0].Clock, trust.OperatorClock, "the time is by the clock")
	f := report.Of(verify.NonRepudiation)
	must.Hold(t, f.Status == verify.NotProved, "non-repudiation is %s, although the operator keeps the key", f.Status)
}

// The trust file of one installation proves nothing about another's records.
func TestTrustOfAnotherInstallation(t *testing.T) {
	_, r := made(t)
	other, _ := made(t)
	trusted := get(open(t, other).Trust(t.Context()))
	report := verify.Record(r, verify.Options{Trust: trusted})
	for _, g := range []verify.Guarantee{verify.Content, verify.Authentication, verify.Time, verify.Order} {
		f := report.Of(g)
		must.Hold(t, f.Status == verify.NotProved, "%s: %s, want not proved: %s", g, f.Status, f.Reason)
	}
}

func TestAlgorithms(t *testing.T) {
	for _, algorithm := range evidence.Algorithms() {
		if algorithm.PostQuantum() {
			continue // never a first key
		}
		c := installation.Config{Dir: filepath.Join(t.TempDir(), "data"), Algorithm: algorithm}
		must.Do(t, installation.Create(t.Context(), c))
		r := seal(t, open(t, c))
		must.Hold(t, r.Payload.Signers[0].Algorithm == algorithm, "signed with %s, want %s", r.Payload.Signers[0].Algorithm, algorithm)
	}
}

func TestFsck(t *testing.T) {
	c, _ := made(t)
	damages, size, err := installation.Fsck(t.Context(), c, nil)
	must.Need(t, err == nil && len(damages) == 0 && size == 1, "damages %v in %d records, error %v; want a whole log of 1", damages, size, err)
}

// The log detects a checkpoint of another log. The further checks detect a time stamp of another authority.
func TestFsckFindsDamage(t *testing.T) {
	c, _ := made(t)
	other, _ := made(t)
	copyFile(t, filepath.Join(other.Dir, "checkpoint"), filepath.Join(c.Dir, "checkpoint"))
	finds(t, c, fsck.DamagePublished)

	c, _ = made(t)
	for _, part := range []string{"root.pem", "root.key", "authority.pem", "authority.key"} {
		copyFile(t, filepath.Join(other.Dir, "authority", part), filepath.Join(c.Dir, "authority", part))
	}
	finds(t, c, fsck.DamageCheck) // the time stamp is of an authority that this installation no longer has
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text := get(os.ReadFile(from))
	must.Do(t, os.WriteFile(to, text, 0o600))
}

func finds(t *testing.T, c installation.Config, kind fsck.Kind) {
	t.Helper()
	damages, _, err := installation.Fsck(t.Context(), c, nil)
	must.Do(t, err)
	for _, d := range damages {
		if d.Kind == kind {
			return
		}
	}
	t.Errorf("found %v, want %s", damages, kind)
}

// TestFolderThatOthersCanWrite: a folder into which other users could put keys is not opened, and the error says what to do.
func TestFolderThatOthersCanWrite(t *testing.T) {
	c := installation.Config{Dir: filepath.Join(t.TempDir(), "data")}
	must.Do(t, installation.Create(t.Context(), c))
	for _, part := range []string{"", "keys", "jurat.db", "log.key"} {
		path := filepath.Join(c.Dir, part)
		info := get(os.Stat(path))
		for _, more := range []os.FileMode{0o002, 0o020, 0o022} {
			must.Do(t, os.Chmod(path, info.Mode().Perm()|more))
			i, err := installation.Open(t.Context(), c)
			must.Hold(t, errors.Is(err, installation.ErrOpen) && strings.Contains(err.Error(), "chmod go-w "+path), "%s with %04o: %v", part, more, err)
			if i != nil {
				i.Close()
			}
		}
		must.Do(t, os.Chmod(path, info.Mode().Perm()))
	}
	i := get(installation.Open(t.Context(), c))
	must.Do(t, i.Close())
}

// canary is the name of an agent that only expired records have.
const canary = "canary-agent-4711"

// hits returns how many records have a text.
func hits(t *testing.T, x *find.Index, text string) int {
	t.Helper()
	must.Do(t, x.Follow(t.Context(), nil))
	found := get(x.Records(t.Context(), &find.Records{Text: find.Fold(text)}, find.Scope{All: true}, nil))
	return len(found.Hits)
}

// seen seals what a recorder saw of an agent in the chain "talk", and that it missed a call of it.
func seen(t *testing.T, i *installation.Installation, agent string, at time.Time) {
	t.Helper()
	body := observed.Whole([]byte("{}"), "application/json")
	act := get(observed.Draft(observed.Act{Payload: evidence.Payload{AgentID: "tap", RequestID: "r", Timestamp: evidence.FormatTime(at), ChainID: "talk"},
		Observed: evidence.Observed{Began: evidence.FormatTime(at), Agent: agent, Vantage: evidence.Proxy, Fidelity: evidence.ByBytes, Protocol: "openai.chat", Path: "/v1", Status: 200, Ended: evidence.Complete},
		Request:  body, Response: body})).Payload
	gap := observed.Event{Event: observed.Gap, Reason: "disk full", Missed: []observed.Missed{{Agent: agent, Calls: 3, Minute: evidence.FormatTime(at)}}}
	for _, p := range []evidence.Payload{act, get(gap.Payload("tap", evidence.FormatTime(at), "recorder/tap"))} {
		signers := get(i.Keys.Signers(t.Context(), evidence.RoleRecorder, "tap"))
		get(i.Ledger.Seal(t.Context(), get(evidence.NewDraft(p)), signers))
	}
}

// TestExpiredLeavesTheIndex: what expired is found no more, and neither its names nor its terms are left in the file, nor in pages that are
// free, while what else its chain has stays; what was sealed apart was never there.
func TestExpiredLeavesTheIndex(t *testing.T) {
	c, i, _, _, apart := aYearAgo(t)
	must.Do(t, i.Close())
	then := time.Now().AddDate(-1, 0, 0)
	past := c
	past.Now = func() time.Time { return then }
	i = open(t, past)
	seen(t, i, canary, then)
	must.Do(t, i.Close())
	i = open(t, c)
	seen(t, i, "courier", time.Now())
	path := filepath.Join(c.Dir, "find.db")
	x := get(find.Open(t.Context(), i.Ledger, path))
	defer x.Close()
	found(t, x, 2, 2)
	hidden, err := x.Records(t.Context(), &find.Records{Record: apart.Payload.RecordID}, find.Scope{All: true}, nil)
	must.Hold(t, err == nil && len(hidden.Hits) == 1, "the record with what is sealed apart: %v, %v", hidden, err)
	must.Hold(t, bytes.Contains(bytesOf(t, path), []byte(canary)), "the file does not have the name to begin with")
	expire(t, i, "c-1", "recorder/tap", "talk")
	found(t, x, 1, 2)
	expire(t, i)
	found(t, x, 0, 1)
	must.Hold(t, !bytes.Contains(bytesOf(t, path), []byte(canary)), "the file still has the name of an agent whose records have expired")
	again := filepath.Join(t.TempDir(), "again.db")
	y := get(find.Open(t.Context(), i.Ledger, again))
	defer y.Close()
	must.Do(t, y.Follow(t.Context(), nil))
	must.Equal(t, cmp.Diff(inside(t, again), inside(t, path)), "", "the file has other things than one that is made again (-again +file):\n")
}

func expire(t *testing.T, i *installation.Installation, except ...string) {
	t.Helper()
	o := expireOrder()
	o.Except = except
	done, err := i.Expire(t.Context(), o)
	must.Need(t, err == nil && done.Records != 0, "%v %v", done, err)
}

// found compares how many records are found with a text that only old records have, and how many agents the chain "talk" has, each of which a
// recorder saw once and missed three times.
func found(t *testing.T, x *find.Index, texts, agents int) {
	t.Helper()
	must.Equal(t, hits(t, x, "of Anna"), texts)
	r := get(x.Recording(t.Context(), "talk"))
	if r == nil || len(r.Agents) != agents || slices.Contains(r.Agents, canary) != (agents == 2) || r.Acts != int64(agents) || r.Records != int64(agents) || r.Missed != int64(3*agents) {
		t.Errorf("of the chain %+v is left, want %d agents", r, agents)
	}
}

// bytesOf returns the file of a database and its write-ahead log.
func bytesOf(t *testing.T, path string) []byte {
	t.Helper()
	return append(get(os.ReadFile(path)), get(os.ReadFile(path+"-wal"))...)
}

// inside counts what an index has: records, notes, sums of chains, terms, how often these occur, and free pages.
func inside(t *testing.T, path string) (counts []int64) {
	t.Helper()
	db := get(sql.Open("sqlite", path))
	defer db.Close()
	db.SetMaxOpenConns(1) // the table of terms is of one connection
	get(db.Exec("CREATE VIRTUAL TABLE temp.terms USING fts5vocab(main, words, row)"))
	for _, what := range []string{"count(*) FROM records", "count(*) FROM notes", "count(*) FROM chains", "sum(length(sum)) FROM chains", "count(*) FROM words_docsize",
		"count(*) FROM temp.terms", "sum(doc) FROM temp.terms", "* FROM pragma_freelist_count"} {
		var n int64
		must.Do(t, db.QueryRow("SELECT "+what).Scan(&n))
		counts = append(counts, n)
	}
	return counts
}
