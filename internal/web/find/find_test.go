package find_test

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
	gocmp "github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/evidence/operator"
	"jurat/internal/court/subject"
	"jurat/internal/court/trial"
	"jurat/internal/log/ledger/sqlite"
	"jurat/internal/log/ledger/storage"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/internal/web/find"
	"jurat/jury"
)

func getter(pairs ...string) func(string) string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return m[name] }
}

// say seals what an agent said.
func say(t *testing.T, h *jurattest.House, text string, apart ...string) *evidence.Record {
	t.Helper()
	said := must.Get(jsontext.AppendQuote(nil, text))(t)
	return h.Seal(t, evidence.Payload{ActionType: evidence.Recommendation, Timestamp: "2026-01-01T00:00:00Z", AgentID: "bot", RequestID: "r", Model: "m", ModelVersion: "1",
		Prompt: jsontext.Value(`"p"`), Response: said, Parameters: jsontext.Value(`{}`)}, apart...)
}

// TestWords finds quotations in three scripts, whatever their letter case and punctuation, and nothing that was sealed apart.
func TestWords(t *testing.T) {
	h := jurattest.New(t)
	for _, text := range []string{`He said: "Pay $1,000 now!"`, "返金は三日以内に行います。", "Рекомендованный маршрут: A9"} {
		say(t, h, text)
	}
	say(t, h, "the hidden number is 4711", "/response")
	x := must.Get(find.Open(t.Context(), h.Ledger, t.TempDir()+"/find.db"))(t)
	defer x.Close()
	must.Do(t, x.Follow(t.Context(), nil))
	for text, want := range map[string]int{`"pay $1,000 NOW!"`: 1, "返金": 1, "三日以内": 1, "МАРШРУТ: a9": 1, "pay $1.000": 0, "hidden number": 0, "4711": 0} {
		q := must.Get(find.ReadRecords(getter("text", text)))(t)
		for _, in := range []find.Scope{{All: true}, {Agent: "bot"}} {
			found, err := x.Records(t.Context(), q, in, nil)
			must.Hold(t, err == nil && len(found.Hits) == want, "%s: %d hits, %v; want %d", text, len(found.Hits), err, want)
		}
		found, err := x.Records(t.Context(), q, find.Scope{Agent: "other"}, nil)
		must.Hold(t, err == nil && len(found.Hits) == 0 && found.Next == "", "%s: another agent finds %+v, %v", text, found, err)
	}
}

// TestTrials filters trials by what a summary and the index have.
func TestTrials(t *testing.T) {
	h := jurattest.New(t)
	id := h.Try(t, jury.MajorityVote).ID
	x := must.Get(find.Open(t.Context(), h.Ledger, ""))(t)
	defer x.Close()
	must.Do(t, x.Follow(t.Context(), nil))
	trials := trial.NewIndex(h.Ledger, nil)
	must.Do(t, trials.Follow(t.Context()))
	for _, tt := range []struct {
		name, value string
		want        int
	}{{"record", id, 1}, {"record", "nothing", 0}, {"juror", "nobody", 0}, {"verdict", "none", 0}, {"sort", "highest", 1}} {
		q := must.Get(find.ReadTrials(getter(tt.name, tt.value)))(t)
		listed, err := q.Trials(t.Context(), trials, x, nil)
		must.Hold(t, err == nil && len(listed.Trials) == tt.want && listed.Counts.Total == tt.want, "%s=%s: %+v, %v", tt.name, tt.value, listed, err)
	}
}

// TestPages: what takes several transactions is found, also by the next process, in pages and by both orders; a file of another log is
// made again.
func TestPages(t *testing.T) {
	h := jurattest.New(t)
	const n = 4500
	for i := range n {
		text := "nothing of note"
		if i%500 == 0 {
			text = "запись, которую ищут"
		}
		say(t, h, text)
	}
	path := t.TempDir() + "/find.db"
	for _, again := range []bool{false, true} {
		x := must.Get(find.Open(t.Context(), h.Ledger, path))(t)
		done, _ := x.Progress()
		must.Hold(t, (done > 0) == again, "opened again: %t; it has %d records", again, done)
		must.Do(t, x.Follow(t.Context(), nil))
		for _, sort := range []string{"newest", "oldest"} {
			var places []int64
			for after := ""; ; {
				q := must.Get(find.ReadRecords(getter("text", "ЗАПИСЬ, которую", "sort", sort, "limit", "4", "after", after, "actor", "bot")))(t)
				found := must.Get(x.Records(t.Context(), q, find.Scope{All: !again, Agent: "bot"}, nil))(t) // no record is of a trial
				for _, hit := range found.Hits {
					places = append(places, hit.Place)
				}
				if after = found.Next; after == "" {
					break
				}
			}
			must.Hold(t, len(places) == 9 && (places[0] < places[8]) == (sort == "oldest"), "%s: %v", sort, places)
		}
		must.Do(t, x.Close())
	}
	other := jurattest.New(t)
	say(t, other, "another log")
	x := must.Get(find.Open(t.Context(), other.Ledger, path))(t)
	defer x.Close()
	done, _ := x.Progress()
	must.Hold(t, done == 0, "the index of another log was kept: %d records", done)
}

// TestBrokenOff: an index that is broken off at any place keeps what it has, goes on in the next process, and has each record
// once. One whose file was deleted while it was open is made again by the next.
func TestBrokenOff(t *testing.T) {
	h, path := jurattest.New(t), t.TempDir()+"/find.db"
	const n = 120
	for i := range n {
		say(t, h, fmt.Sprintf("mention %03d of the thing", i))
	}
	for stop := int64(7); stop < n; stop += 31 {
		x := openIndex(t, h, path)
		ctx, cancel := context.WithCancel(t.Context())
		err := x.Follow(ctx, func(done, _ int64) {
			if done >= stop {
				cancel()
			}
		})
		done, _ := x.Progress()
		must.Hold(t, done == stop, "broken off at %d, the index has %d", stop, done)
		must.Need(t, err == nil || errors.Is(err, context.Canceled), "%v", err)
		cancel()
		must.Do(t, x.Close())
	}
	whole := func(x *find.Index) {
		follow(t, x)
		q := must.Get(find.ReadRecords(getter("text", "of the thing", "limit", "500")))(t)
		found, err := x.Records(t.Context(), q, find.Scope{All: true}, nil)
		must.Hold(t, err == nil && len(found.Hits) == n, "%d records are found, %v; want %d", len(found.Hits), err, n)
	}
	x := openIndex(t, h, path)
	whole(x)
	for _, end := range []string{"", "-wal", "-shm"} {
		err := os.Remove(path + end)
		must.Need(t, err == nil || errors.Is(err, os.ErrNotExist), "%v", err)
	}
	whole(openIndex(t, h, path))
}

// TestTwoFollow: two processes that follow the log with one file at once add each record once.
func TestTwoFollow(t *testing.T) {
	h, path := jurattest.New(t), t.TempDir()+"/find.db"
	const n = 200
	x, y := openIndex(t, h, path), openIndex(t, h, path)
	var both sync.WaitGroup
	for _, one := range []*find.Index{x, y} {
		both.Go(func() {
			for done := int64(0); done < n; done, _ = one.Progress() {
				if err := one.Follow(t.Context(), nil); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range n {
		say(t, h, fmt.Sprintf("mention %03d of the thing", i))
	}
	both.Wait()
	q := must.Get(find.ReadRecords(getter("text", "of the thing", "limit", "500", "actor", "bot")))(t)
	for _, one := range []*find.Index{x, y} {
		found, err := one.Records(t.Context(), q, find.Scope{All: true}, nil)
		must.Hold(t, err == nil && len(found.Hits) == n, "%d hits, %v; want %d", len(found.Hits), err, n)
	}
}

// TestEarlierVersion: the file of an earlier program is made again from the log, with progress.
func TestEarlierVersion(t *testing.T) {
	h, path := jurattest.New(t), t.TempDir()+"/find.db"
	for i := range 50 {
		say(t, h, fmt.Sprintf("mention %03d of the thing", i))
	}
	x := openIndex(t, h, path)
	follow(t, x)
	must.Do(t, x.Close())
	db, err := sqlite.OpenFile(path)
	if err == nil {
		_, err = db.ExecContext(t.Context(), "DROP TABLE notes; PRAGMA user_version = 1")
	}
	must.Do(t, errors.Join(err, db.Close()))
	x = openIndex(t, h, path)
	done, _ := x.Progress()
	must.Hold(t, done == 0, "%d records of the earlier file are used", done)
	told := int64(0)
	must.Do(t, x.Follow(t.Context(), func(done, total int64) { told = max(told, done) }))
	must.Equal(t, told, 50)
	q := must.Get(find.ReadRecords(getter("text", "mention 017")))(t)
	found, err := x.Records(t.Context(), q, find.Scope{All: true}, nil)
	must.Hold(t, err == nil && len(found.Hits) == 1, "%+v, %v", found, err)
}

// TestManyReplaceAtOnce: of processes that find a file of another version at the same moment, one makes it anew, and all go on with that one: what
// each adds is found by the others, and by the next.
func TestManyReplaceAtOnce(t *testing.T) {
	h := jurattest.New(t)
	for i := range 20 {
		say(t, h, fmt.Sprintf("mention %03d of the thing", i))
	}
	for range 10 {
		path := t.TempDir() + "/find.db"
		db := must.Get(sqlite.OpenFile(path))(t)
		_, err := db.Exec("CREATE TABLE words (old TEXT); PRAGMA user_version = 4")
		must.Do(t, errors.Join(err, db.Close()))
		var all [6]*find.Index
		var opened sync.WaitGroup
		for i := range all {
			opened.Go(func() { all[i] = openIndex(t, h, path) })
		}
		opened.Wait()
		for i, x := range append(all[:], openIndex(t, h, path)) {
			follow(t, x)
			q := must.Get(find.ReadRecords(getter("text", "of the thing", "limit", "500")))(t)
			found, err := x.Records(t.Context(), q, find.Scope{All: true}, nil)
			must.Need(t, err == nil && len(found.Hits) == 20, "index %d: %d records are found, %v", i, len(found.Hits), err)
		}
	}
}

// alphabets are what random texts are made of: scripts, combining marks, emoji with joiners, compatible forms, controls.
var alphabets = [][]string{
	{"a", "B", "c", "É", "e\u0301", "ß", "İ", "ſ", " ", "  ", "\t", "$", "1", ","},
	{"щ", "Ё", "е\u0308", "ж", "Я", " ", "-", "1"},
	{"返", "金", "は", "が", "か\u3099", "ガ", "ﾊﾟ", "。", "a", "B", " ", "３"},
	{"👍", "👩\u200d💻", "🇯🇵", "a", " ", "\ufe0f", "b"},
	{"ก", "ำ", "한", "ᄒ", "ᅡ", "ﬁ", "Ⅷ", "x", "\u00ad", "\u200b", "%", "_", "*", `"`, `\`},
}

func randomText(r *rand.Rand, most int) string {
	from := alphabets[r.IntN(len(alphabets))]
	var b strings.Builder
	for range 1 + r.IntN(most) {
		b.WriteString(from[r.IntN(len(from))])
	}
	return b.String()
}

// cutOut returns a random part of a text, in another letter case now and then.
func cutOut(r *rand.Rand, text string) string {
	runes := []rune(text)
	begin := r.IntN(len(runes))
	part := string(runes[begin : begin+1+r.IntN(min(60, len(runes)-begin))])
	switch r.IntN(3) {
	case 0:
		return strings.ToUpper(part)
	case 1:
		return strings.Map(unicode.ToLower, part)
	}
	return part
}

// TestAgainstScan compares the index with reading every text: of an index that followed a growing log, of its file when it is opened again, and of one in memory.
func TestAgainstScan(t *testing.T) {
	h, r := jurattest.New(t), rand.New(rand.NewPCG(7, 11))
	var texts, ids []string
	path := t.TempDir() + "/find.db"
	x := openIndex(t, h, path)
	for i := range 300 {
		text := randomText(r, 120)
		texts, ids = append(texts, text), append(ids, say(t, h, text).Payload.RecordID)
		if i%100 == 50 {
			follow(t, x)
		}
	}
	follow(t, x)
	compare := func(when string, x *find.Index) {
		asked, searches := 0, atLength(400, 120)
		for range searches {
			text := cutOut(r, texts[r.IntN(len(texts))])
			if r.IntN(4) == 0 {
				text = randomText(r, 4)
			}
			q, err := find.ReadRecords(getter("text", text, "limit", "500"))
			if err != nil {
				continue // too short, which TestHostileQueries is about
			}
			asked++
			found := must.Get(x.Records(t.Context(), q, find.Scope{All: true}, nil))(t)
			var got, want []string
			for _, hit := range found.Hits {
				got = append(got, hit.Record.Payload.RecordID)
			}
			for i, said := range slices.Backward(texts) {
				if strings.Contains(find.Fold(said), find.Fold(text)) {
					want = append(want, ids[i])
				}
			}
			must.Need(t, slices.Equal(got, want), "%s: %q: found %v, but a scan finds %v", when, text, got, want)
		}
		must.Hold(t, asked >= searches/2, "%s: only %d of the texts could be looked for", when, asked)
	}
	compare("while it is open", x)
	compare("in another process", openIndex(t, h, path))
	compare("in memory", followed(t, h))
}

func openIndex(t *testing.T, h *jurattest.House, path string) *find.Index {
	t.Helper()
	x := must.Get(find.Open(t.Context(), h.Ledger, path))(t)
	t.Cleanup(func() { x.Close() })
	return x
}

func follow(t *testing.T, x *find.Index) {
	t.Helper()
	must.Do(t, x.Follow(t.Context(), nil))
}

// followed returns an index in memory.
func followed(t *testing.T, h *jurattest.House) *find.Index {
	t.Helper()
	x := openIndex(t, h, "")
	follow(t, x)
	return x
}

// TestFold: how a text was typed does not matter, what it says does.
func TestFold(t *testing.T) {
	for _, same := range [][2]string{{"Straße", "STRASSE"}, {"e\u0301", "É"}, {"ｶﾞ", "ガ"}, {"ﬁne", "FINE"}, {"a \t\n b", "a b"}, {" a\x00b ", "a b"}, {"Ё", "е\u0308"}} {
		must.Equal(t, find.Fold(same[0]), find.Fold(same[1]))
	}
	r := rand.New(rand.NewPCG(3, 4))
	for _, in := range []struct{ from, to rune }{{0, 0x80}, {0x400, 0x460}, {0x3000, 0x3130}, {0x4e00, 0xa000}} { // many are folded in a quicker way
		for range 2000 {
			var text string
			for range r.IntN(30) {
				text += string(in.from + r.Int32N(in.to-in.from))
			}
			must.Equal(t, find.Fold(text), strings.TrimRight(strings.TrimSuffix(find.Fold(text+"é"), "é"), " "), text, "folds to")
		}
	}
	for _, other := range [][2]string{{"a b", "ab"}, {"а", "a"}, {"1,000", "1000"}, {"は", "ば"}} {
		must.Hold(t, find.Fold(other[0]) != find.Fold(other[1]), "%q and %q are taken for the same", other[0], other[1])
	}
}

// TestHostileQueries: what no text can be is refused with the name of its parameter; everything else is looked for as it stands.
func TestHostileQueries(t *testing.T) {
	h := jurattest.New(t)
	say(t, h, `all 100%_* of "it" \ and '; DROP TABLE records; --`)
	x := openIndex(t, h, "")
	follow(t, x)
	for _, tt := range []struct {
		name, value string
		want        int // hits; -1: refused
	}{
		{"text", "   ", -1}, {"text", "\x00\x00\x00", -1}, {"text", "%", -1}, {"text", "ab", -1}, {"text", "a\xffbc", -1}, {"text", strings.Repeat("я", 2001), -1},
		{"text", "%_*", 1}, {"text", "%_% of", 0}, {"text", "a%", -1}, {"text", "'; drop table", 1}, {"text", "all\x00100", 1}, {"text", "***", 0},
		{"text", strings.Repeat("я", 2000), 0}, {"actor", "' OR 1=1", 0}, {"actor", strings.Repeat("x", 501), -1}, {"action", "%", 0},
		{"from", "yesterday", -1}, {"to", "2026-13-01", -1}, {"after", "-2", -1}, {"after", "x", -1}, {"limit", "0", -1}, {"limit", "501", -1}, {"limit", "1e2", -1},
		{"sort", "score", -1}, {"said", "yes", -1}, {"said", "true", -1},
	} {
		q, err := find.ReadRecords(getter(tt.name, tt.value))
		if tt.want < 0 {
			must.Hold(t, err != nil && strings.HasPrefix(err.Error(), tt.name+": "), "%s %.20q: %v; want a refusal that names the parameter", tt.name, tt.value, err)
			continue
		}
		if err != nil {
			t.Errorf("%s %.20q: %v", tt.name, tt.value, err)
			continue
		}
		found, err := x.Records(t.Context(), q, find.Scope{All: true}, nil)
		must.Hold(t, err == nil && len(found.Hits) == tt.want, "%s %.20q: %d hits, %v; want %d", tt.name, tt.value, len(found.Hits), err, tt.want)
	}
	must.Refuse(t, "safe_pass, needs_review, unsafe_fail, none", "want what there is")(find.ReadTrials(getter("verdict", "safe")))
}

var (
	watched = []string{"bot", "Invoice Bot", "бот-2"}
	taps    = []string{"tap-1", "tap-2"}
	ends    = []evidence.Ended{evidence.Complete, evidence.Complete, evidence.ClientGone, evidence.LostInCrash}
)

// watch seals what a recorder saw of a call, and now and then what it did not see.
func (h *town) watch(t *testing.T) {
	t.Helper()
	agent, began, took := pick(h.r, watched), jurattest.Start.Add(-time.Duration(h.r.IntN(5*24*60))*time.Minute), time.Duration(h.r.IntN(9000))*time.Millisecond
	answer := fmt.Sprintf(`{"model":%q,"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":%q}}],"usage":{"prompt_tokens":%d,"completion_tokens":2,"total_tokens":9}}`,
		pick(h.r, models), pick(h.r, sentences), h.r.IntN(9))
	act := observed.Act{Payload: evidence.Payload{AgentID: pick(h.r, taps), RequestID: "r", Timestamp: evidence.FormatTime(began.Add(took)), ChainID: "recorded/" + agent + "/" + pick(h.r, []string{"1", "2", "3", "4"})},
		Observed: evidence.Observed{Agent: agent, Vantage: evidence.Proxy, Fidelity: evidence.ByBytes, Protocol: "openai.chat", Path: "/v1/chat/completions", Status: 200, Ended: pick(h.r, ends), Began: evidence.FormatTime(began), EndedMS: observed.Milliseconds(took)},
		Request:  observed.Whole(`{"model":"m","messages":[{"role":"user","content":"May I send it?"}]}`, "application/json"), Response: observed.Whole(answer, "application/json")}
	p := must.Get(observed.Draft(act))(t).Payload
	h.Seal(t, p)
	if h.r.IntN(4) == 0 {
		h.event(t, &observed.Event{Event: observed.Gap, Reason: "disk full", Missed: []observed.Missed{{Agent: agent, Calls: int64(1 + h.r.IntN(4)), Minute: evidence.FormatTime(began)}}})
	}
}

func (h *town) event(t *testing.T, e *observed.Event) {
	t.Helper()
	p := must.Get(e.Payload(pick(h.r, taps), evidence.FormatTime(jurattest.Start), "recorder/tap"))(t)
	h.Seal(t, p)
}

// seen returns the chain of the act that a recorder saw last.
func (h *town) seen(t *testing.T) (chain string) {
	t.Helper()
	for r, err := range h.Ledger.Records(t.Context(), 0) {
		must.Do(t, err)
		if r.Payload.Observed != nil {
			chain = r.Payload.ChainID
		}
	}
	return chain
}

// judge puts the records of a chain before a jury.
func (h *town) judge(t *testing.T, chain string) string {
	t.Helper()
	records := must.Get(h.Ledger.Chain(t.Context(), chain))(t)
	var exhibits []subject.Exhibit
	for _, r := range records {
		exhibits = append(exhibits, subject.NewExhibit(r))
	}
	on := must.Get(subject.FromRecords(nil, exhibits, subject.Verification{Outcome: subject.NotProved}))(t)
	c := trial.Config{Ledger: h.Ledger, Keys: h.Keys, Settings: jurattest.Settings(jury.MajorityVote), Submitter: "submitter", Now: func() time.Time { return jurattest.Start }}
	c.Jurors, c.Judge = jurattest.Panel()
	return must.Get(trial.Submit(t.Context(), c, on))(t)
}

// recordings answers a search by looking at each record.
func (s *scan) recordings(q *find.Recordings) (list []find.Recording) {
	byChain := map[string]*find.Recording{}
	text := map[string]bool{}
	for place, r := range s.records {
		p := &r.Payload
		o := p.Observed
		if o == nil {
			continue
		}
		at, err := evidence.ParseTime(o.Began)
		if err != nil {
			panic(err)
		}
		one := byChain[p.ChainID]
		if one == nil {
			one = &find.Recording{Chain: p.ChainID}
			one.First, byChain[p.ChainID] = at.UnixMilli(), one
		}
		add := func(list []string, name string) []string {
			if !slices.Contains(list, name) {
				list = append(list, name)
			}
			slices.Sort(list)
			return list
		}
		one.Agents, one.Recorders, one.Models = add(one.Agents, o.Agent), add(one.Recorders, p.AgentID), add(one.Models, cmp.Or(p.ModelVersion, p.Model))
		one.Protocols, one.Vantages = add(one.Protocols, o.Protocol), []evidence.Vantage{o.Vantage}
		one.First, one.Last, one.Place = min(one.First, at.UnixMilli()), max(one.Last, at.UnixMilli()+*o.EndedMS), int64(place)
		one.Acts, one.Calls, one.Records = one.Acts+1, one.Calls+1, one.Records+1
		if o.Ended != evidence.Complete {
			one.Broken++
		}
		if o.Ended == evidence.LostInCrash {
			one.Lost++
		}
		usage := struct{ In int64 }{}
		fmt.Sscanf(string(o.Usage), `{"completion_tokens":2,"prompt_tokens":%d`, &usage.In)
		one.Input, one.Output, one.Counted = one.Input+usage.In, one.Output+2, one.Counted+1
		text[p.ChainID] = text[p.ChainID] || s.has(r, q.Text, false)
	}
	for _, one := range byChain {
		for _, r := range s.records {
			if r.Payload.ActionType == evidence.RecorderEvent {
				e, err := observed.ParseEvent(r.Payload.Response)
				if err != nil {
					panic(err)
				}
				for _, m := range e.Missed {
					at, _ := evidence.ParseTime(m.Minute)
					if slices.Contains(one.Agents, m.Agent) && at.UnixMilli()+60_000 > one.First && at.UnixMilli() <= one.Last {
						one.Missed += m.Calls
					}
				}
			}
			if r.Payload.ActionType == evidence.Submission && strings.Contains(string(r.Payload.Response), fmt.Sprintf(`"chain_id":%q`, one.Chain)) {
				one.Trials = append(one.Trials, r.Payload.ChainID)
			}
		}
		names := find.Fold(strings.Join(one.Agents, "|"))
		if text[one.Chain] && strings.Contains(names, q.Agent) && (q.From.IsZero() || one.Last >= q.From.UnixMilli()) && (q.To.IsZero() || one.First < q.To.UnixMilli()) {
			list = append(list, *one)
		}
	}
	slices.SortFunc(list, func(a, b find.Recording) int { return cmp.Compare(b.Place, a.Place) })
	return list
}

func (a *asking) compareRecordings(t *testing.T, when string, x *find.Index) int {
	t.Helper()
	values := map[string]string{"limit": fmt.Sprint(1 + a.r.IntN(5))}
	a.sometimes(3, values, "agent", strings.ToUpper(string([]rune(pick(a.r, watched))[1:])))
	a.sometimes(3, values, "text", pick(a.r, sentences))
	a.sometimes(3, values, "from", a.date(a.r.IntN(3)))
	a.sometimes(3, values, "to", a.date(3+a.r.IntN(3)))
	var got []find.Recording
	for {
		q := must.Get(find.ReadRecordings(get(values)))(t)
		found := must.Get(x.Recordings(t.Context(), q))(t)
		got = append(got, found.Recordings...)
		if values["after"] = found.Next; found.Next == "" {
			want := a.scan.recordings(q)
			diff := gocmp.Diff(want, got)
			must.Need(t, diff == "", "%s: %v (-a scan +the index)\n%s", when, values, diff)
			return len(got)
		}
	}
}

// TestEvents: what recorders say of themselves while they see a part of a chain is found, signs of life apart.
func TestEvents(t *testing.T) {
	h := &town{jurattest.New(t), rand.New(rand.NewPCG(5, 7))}
	tell := func(e *observed.Event) { h.event(t, e) }
	act := func() {
		h.Seal(t, evidence.Payload{ActionType: evidence.ObservedCall, AgentID: "tap-1", RequestID: "r", Timestamp: "2026-01-01T00:00:00Z", ChainID: "c",
			Observed: &evidence.Observed{Agent: "bot", Began: "2026-01-01T00:00:00Z", Ended: evidence.Complete, EndedMS: new(int64), Fidelity: evidence.Parsed, Protocol: "openai.chat", Vantage: evidence.InProcess}})
	}
	act()
	tell(&observed.Event{Event: observed.Stop, Reason: "asked to"})
	tell(&observed.Event{Event: observed.Heartbeat, Calls: new(int64), Since: evidence.FormatTime(jurattest.Start)})
	act()
	tell(&observed.Event{Event: observed.ModeChanged, Mode: observed.Passing, Reason: "disk full"})
	say(t, h.House, "something else")
	act()
	tell(&observed.Event{Event: observed.Stop, Reason: "asked to"})
	x := followed(t, h.House)
	for _, c := range []struct {
		from, to int64
		most     int
		want     []int64
	}{{1, 0, 9, []int64{1, 4, 7}}, {2, 3, 9, []int64{4}}, {1, 3, 9, []int64{1, 4}}, {1, 0, 2, []int64{1, 4}}, {3, 0, 9, []int64{7}}, {4, 0, 9, nil}, {1, 4, 9, nil}} {
		got := must.Get(x.Events(t.Context(), &find.Recording{Chain: "c", Sight: find.Sight{Recorders: taps}}, c.from, c.to, c.most))(t)
		must.Hold(t, slices.Equal(got, c.want), "%+v: %v", c, got)
	}
	got, err := x.Events(t.Context(), &find.Recording{Chain: "c", Sight: find.Sight{Recorders: []string{"another"}}}, 1, 0, 9)
	must.Hold(t, len(got) == 0 && err == nil, "%v %v", got, err)
	say(t, h.House, "something else")
	follow(t, x)
	must.Give(x.LastOfInterest(t.Context()))(t, 7)
}

// TestErased: the index knows what was erased.
func TestErased(t *testing.T) {
	h := jurattest.New(t)
	r := say(t, h, "call me at 555", "/response")
	body := must.Get(operator.Encode(operator.ErasureBody{By: "anna", Pointers: []string{"/response"}, Reason: "asked for", Record: r.Digest}))(t)
	h.Seal(t, evidence.Payload{ActionType: evidence.Erasure, AgentID: "operator", Timestamp: evidence.FormatTime(jurattest.Start), Saw: []evidence.Digest{r.Digest}, Response: jsontext.Value(body)})
	x := openIndex(t, h, t.TempDir()+"/find.db")
	follow(t, x)
	got := must.Get(x.Erased(t.Context(), []evidence.Digest{r.Digest, evidence.DigestOf(nil)}))(t)
	must.Equal(t, gocmp.Diff(map[evidence.Digest][]string{r.Digest: {"/response"}}, got), "")
}

// TestHostileRecordings: what recorders seal may name a thousand agents, and times and counts that cannot be.
func TestHostileRecordings(t *testing.T) {
	h := &town{jurattest.New(t), nil}
	for i := range 60 {
		o := &evidence.Observed{Agent: fmt.Sprintf("agent-%d <b>&", i), Began: "0001-01-01T00:00:00Z", Ended: evidence.Complete, EndedMS: new(int64(1<<53 - 1)), Fidelity: evidence.Parsed, Protocol: "openai.chat",
			Vantage: evidence.InProcess, Usage: jsontext.Value(`{"completion_tokens":9007199254740991,"prompt_tokens":9007199254740991}`)}
		h.Seal(t, evidence.Payload{ActionType: evidence.ObservedCall, AgentID: "tap", RequestID: "r", Timestamp: "2026-01-01T00:00:00Z", ChainID: "c", Observed: o})
	}
	x := followed(t, h.House)
	r := must.Get(x.Recording(t.Context(), "c"))(t)
	must.Need(t, r != nil && len(r.Agents) == 20 && r.Acts == 60 && r.Records == 60 && r.Counted == 0 && r.Last >= r.First, "%+v", r)
	must.Give(x.Recording(t.Context(), "no such chain"))(t, nil)
	for name, value := range map[string]string{"text": "ab", "from": "yesterday", "after": "-1", "limit": "0"} {
		_, err := find.ReadRecordings(getter(name, value))
		must.Hold(t, err != nil, "%s=%s is accepted", name, value)
	}
}

// expire seals an act on expiry, as the operator does when records expire.
func expire(t *testing.T, h *jurattest.House) {
	t.Helper()
	h.Seal(t, evidence.Payload{ActionType: evidence.Expiry, AgentID: "operator", Timestamp: evidence.FormatTime(jurattest.Start), ChainID: operator.ExpiryChain, Response: jsontext.Value(`{}`)})
}

// fill adds to an index what no record has (any more), and makes its write-ahead log short. It returns the file.
func fill(t *testing.T, path string) *sql.DB {
	t.Helper()
	db := must.Get(sqlite.OpenFile(path))(t)
	t.Cleanup(func() { db.Close() })
	must.Get(db.Exec(`WITH RECURSIVE n (i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < 9000)
		INSERT INTO records SELECT i, 'a', 'r', 'canary-4711', hex(randomblob(100)), 0, '' FROM n; PRAGMA wal_checkpoint(TRUNCATE)`))(t)
	return db
}

// holds reports how large the files of an index are, and whether they have what fill added.
func holds(t *testing.T, path string) (size int, canary bool) {
	t.Helper()
	for _, end := range []string{"", "-wal"} {
		doc := must.Get(os.ReadFile(path + end))(t)
		size, canary = size+len(doc), canary || bytes.Contains(doc, []byte("canary-4711"))
	}
	return size, canary
}

func wantMentions(t *testing.T, x *find.Index, n int) {
	t.Helper()
	q := must.Get(find.ReadRecords(getter("text", "of the thing", "limit", "500")))(t)
	found, err := x.Records(t.Context(), q, find.Scope{All: true}, nil)
	must.Hold(t, err == nil && len(found.Hits) == n, "%d hits, %v; want %d", len(found.Hits), err, n)
}

// TestEmptied: two processes that empty an index at once have each record once, and nothing is left of what was there. That is neither before the
// records of the act are removed, nor long: little is written, even while another process reads what was there.
func TestEmptied(t *testing.T) {
	t.Parallel()
	h, path := jurattest.New(t), t.TempDir()+"/find.db"
	const n = 50
	for i := range n {
		say(t, h, fmt.Sprintf("mention %03d of the thing", i))
	}
	x, y := openIndex(t, h, path), openIndex(t, h, path)
	follow(t, x)
	db := fill(t, path)
	full, _ := holds(t, path)
	must.Do(t, h.Ledger.Expiry().PutExpiring(t.Context(), "act", []int64{0}))
	expire(t, h)
	follow(t, x)
	_, canary := holds(t, path)
	must.Hold(t, canary, "the index was emptied while records were still to be removed")
	must.Do(t, h.Ledger.Expiry().DropExpiring(t.Context(), "act"))
	var both sync.WaitGroup
	for _, one := range []*find.Index{x, y} {
		both.Go(func() {
			err := one.Follow(t.Context(), nil)
			must.Hold(t, err == nil, "%v", err)
		})
	}
	both.Wait()
	wantMentions(t, x, n)
	wantMentions(t, y, n)
	wantSmall := func() {
		t.Helper()
		size, canary := holds(t, path)
		must.Hold(t, !canary && size <= full/3, "%d of %d bytes are left, what was removed: %t", size, full, canary)
	}
	wantSmall()
	fill(t, path)
	reader := must.Get(db.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true}))(t)
	var before int
	must.Do(t, reader.QueryRow("SELECT count(*) FROM records").Scan(&before))
	expire(t, h)
	follow(t, x)
	wantMentions(t, x, n)
	size, _ := holds(t, path)
	must.Hold(t, size <= full+full/3, "to empty %d bytes, %d were written", full, size-full)
	must.Do(t, reader.Rollback())
	follow(t, y)
	wantSmall()
}

// TestEmptiedAndKilled: an index whose process was killed after it was emptied is cut off by the next, whichever acts it has followed: also
// those of another log. What expires later is removed, too.
func TestEmptiedAndKilled(t *testing.T) {
	h, path := jurattest.New(t), t.TempDir()+"/find.db"
	say(t, h, "mention of the thing")
	x := openIndex(t, h, path)
	follow(t, x)
	db := fill(t, path)
	must.Get(db.Exec(`UPDATE state SET next = 0, last = '', expired = 1000000, dirty = 2; INSERT INTO words (words) VALUES ('delete-all'); DELETE FROM records`))(t)
	_, canary := holds(t, path)
	must.Hold(t, canary, "nothing is left to be cut off")
	for _, x := range []*find.Index{openIndex(t, h, path), x} { // the other is of another process, and has the same key
		follow(t, x)
		wantMentions(t, x, 1)
		_, canary := holds(t, path)
		must.Hold(t, !canary, "the files still have what was removed")
		fill(t, path)
		expire(t, h)
		follow(t, x)
		wantMentions(t, x, 1)
		_, canary = holds(t, path)
		must.Hold(t, !canary, "the files have what expired later")
	}
}

// TestEmptiedMeanwhile: what another process removed between two steps of one that follows is cut off before that one adds more.
func TestEmptiedMeanwhile(t *testing.T) {
	h, path := jurattest.New(t), t.TempDir()+"/find.db"
	say(t, h, "mention of the thing")
	x := openIndex(t, h, path)
	follow(t, x)
	db := fill(t, path)
	must.Get(db.Exec(`UPDATE state SET next = 0, last = '', dirty = 2; INSERT INTO words (words) VALUES ('delete-all'); DELETE FROM records`))(t)
	must.Get(find.FollowOnce(x, t.Context(), func(int64, int64) {}))(t)
	wantMentions(t, x, 1)
	_, canary := holds(t, path)
	must.Hold(t, !canary, "the files still have what was removed")
}

// TestLongStretchExpired: the index gets past more expired records than it takes at a time.
func TestLongStretchExpired(t *testing.T) {
	t.Parallel()
	h := jurattest.New(t)
	const n = 4100
	for range n {
		say(t, h, "gone")
	}
	gone := must.Get(h.Ledger.RowsFrom(t.Context(), 0, n))(t)
	indexes, briefs := make([]int64, n), make([]storage.StoredBrief, n)
	for i := range gone {
		indexes[i], briefs[i] = int64(i), storage.StoredBrief{Index: int64(i), Line: []byte("{}")}
		gone[i].Entry, gone[i].ExpiredBy, gone[i].Packed = must.Get(gone[i].LogEntry())(t), "act", storage.Packed{}
	}
	must.Do(t, h.Ledger.Expiry().PutExpiring(t.Context(), "act", indexes))
	must.Do(t, h.Ledger.Expiry().Expire(t.Context(), "act", gone, briefs))
	say(t, h, "mention of the thing")
	x := openIndex(t, h, t.TempDir()+"/find.db")
	waiting, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	must.Do(t, x.Follow(waiting, nil))
	wantMentions(t, x, 1)
}
