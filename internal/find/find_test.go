package find_test

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/find"
	"jurat/internal/must"
	"jurat/internal/trial"
	"jurat/jurattest"
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
			if err != nil || len(found.Hits) != want {
				t.Errorf("%s: %d hits, %v; want %d", text, len(found.Hits), err, want)
			}
		}
		if found, err := x.Records(t.Context(), q, find.Scope{Agent: "other"}, nil); err != nil || len(found.Hits) != 0 || found.Next != "" {
			t.Errorf("%s: another agent finds %+v, %v", text, found, err)
		}
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
		if err != nil || len(listed.Trials) != tt.want || listed.Counts.Total != tt.want {
			t.Errorf("%s=%s: %+v, %v", tt.name, tt.value, listed, err)
		}
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
		if done, _ := x.Progress(); (done > 0) != again {
			t.Errorf("opened again: %t; it has %d records", again, done)
		}
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
			if len(places) != 9 || (places[0] < places[8]) != (sort == "oldest") {
				t.Errorf("%s: %v", sort, places)
			}
		}
		must.Do(t, x.Close())
	}
	other := jurattest.New(t)
	say(t, other, "another log")
	x := must.Get(find.Open(t.Context(), other.Ledger, path))(t)
	defer x.Close()
	if done, _ := x.Progress(); done != 0 {
		t.Errorf("the index of another log was kept: %d records", done)
	}
}
