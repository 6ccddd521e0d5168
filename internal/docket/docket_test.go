package docket_test

import (
	"context"
	"encoding/csv"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jurat/api"
	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/docket"
	"jurat/internal/find"
	"jurat/internal/must"
	"jurat/internal/subject"
	"jurat/internal/trial"
	"jurat/jurattest"
	"jurat/jury"
	"jurat/verify/trust"
)

// TestCSV: no cell is a formula, however it begins, and every text can be read back.
func TestCSV(t *testing.T) {
	for cell, want := range map[string]string{
		"=1+1": "'=1+1", "+cmd|' /C calc'!A0": "'+cmd|' /C calc'!A0", "-2+3": "'-2+3", "@SUM(A1)": "'@SUM(A1)", "\t=1": "'\t'=1", "\r=1": "'\r'=1", "\n=1": "'\n'=1",
		"a;=1+1;b": "a;'=1+1;b", "a; =1": "a;' =1", "a;\"=1\"": "a;'\"=1\"", "a\t@x": "a\t'@x", "a|+1": "a|'+1", "a\n-1": "a\n'-1", "a;;＝1": "a;;'＝1", "a;b\n\nc": "a;b\n\nc", "1;2": "1;2", "  =1": "'  =1",
		"\u3000＝1": "'\u3000＝1", "＋1": "'＋1", "|x": "'|x", "%0": "'%0", "\ufeff=1": "'\ufeff=1",
		"-5": "-5", "42": "42", "a=b": "a=b", "": "", " ": " ", "'=1": "'=1", "a,\"b\"\nc": "a,\"b\"\nc", "返金": "返金",
	} {
		var out strings.Builder
		table := docket.Table{Head: []string{"h", "x"}, Rows: [][]string{{cell, "end"}}}
		must.Do(t, table.WriteCSV(&out))
		rows, err := csv.NewReader(strings.NewReader(out.String())).ReadAll()
		if err != nil || len(rows) != 2 {
			t.Fatalf("%q: %v, %v", cell, rows, err)
		}
		if got := rows[1][0]; got != strings.ReplaceAll(want, "\r\n", "\n") {
			t.Errorf("%q becomes %q, want %q", cell, got, want)
		}
	}
	list := []api.TrialLine{{Agent: "=HYPERLINK(\"http://evil\")", Submitter: "@x"}}
	row := docket.TrialTable(list)
	var out strings.Builder
	if err := row.WriteCSV(&out); err != nil || strings.Contains(out.String(), ",\"=") || strings.Contains(out.String(), ",@") {
		t.Errorf("%s %v", out.String(), err)
	}
}

// TestHits: who said it and when is verified; by a trust file that does not know the actor, nothing is proved.
func TestHits(t *testing.T) {
	h := jurattest.NewForStrangers(t)
	tried := h.Try(t, jury.MajorityVote)
	trials := trial.NewIndex(h.Ledger, nil)
	must.Do(t, trials.Follow(t.Context()))
	none := func(*trial.Summary) bool { return false }
	k := &docket.Keeper{Ledger: h.Ledger, Path: t.TempDir() + "/find.db"}
	defer k.Close()
	x, state, err := k.Ready(t.Context())
	if err != nil || state != (api.IndexState{}) {
		t.Fatal(state, err)
	}
	found, err := x.Records(t.Context(), &find.Records{Text: find.Fold("as the script"), Oldest: true}, find.Scope{All: true}, nil)
	if err != nil || len(found.Hits) == 0 {
		t.Fatal(found, err)
	}
	hits := func(by *trust.Trust, visible func(*trial.Summary) bool) []api.Hit {
		t.Helper()
		list, err := docket.Hits(found, by, trials, visible)
		if err != nil || len(list.Hits) != len(found.Hits) {
			t.Fatalf("%d of %d hits, %v", len(list.Hits), len(found.Hits), err)
		}
		for i, hit := range list.Hits {
			if hit.Record != found.Hits[i].Record.Payload.RecordID {
				t.Errorf("hit %d is %s", i, hit.Record)
			}
		}
		return list.Hits
	}
	for _, hit := range hits(h.Trust(t), nil) {
		if hit.Proved == "" || hit.Authority == "" || hit.Why != "" || !strings.Contains(strings.ToLower(hit.Line), "as the script") || hit.Chain != tried.ID || hit.Outcome == nil {
			t.Errorf("%+v", hit)
		}
	}
	for _, hit := range hits(jurattest.NewImpostor(t).Trust(t), none) {
		if hit.Proved != "" || hit.Why == "" {
			t.Errorf("proved by others' keys: %+v", hit)
		}
		if hit.Outcome != nil {
			t.Errorf("an outcome that the reader may not see: %+v", hit)
		}
	}
}

// TestCompare: the same trial differs in nothing; another has its own scores, and findings of its own.
func TestCompare(t *testing.T) {
	h := jurattest.New(t)
	a := must.Get(docket.Sheet(t.Context(), h.Ledger, h.Try(t, jury.MajorityVote).ID))(t)
	if len(a.Seats) != 3 || len(a.Axes) == 0 || a.Score == nil || a.Seats[0].Reason == "" || a.Seats[0].Scores[a.Axes[0]] == 0 {
		t.Errorf("%+v", a)
	}
	finding := func(message int, rule string) api.TrialFinding {
		return api.TrialFinding{Message: message, Rule: rule, Axis: "safety", Quote: "q"}
	}
	b := a
	a.Findings = []api.TrialFinding{finding(1, "x"), finding(2, "y")}
	b.Findings = []api.TrialFinding{finding(3, "x"), finding(2, "y")}
	c := docket.Compare(a, b)
	if !c.SameCase || len(c.Both) != 1 || len(c.OnlyA) != 1 || len(c.OnlyB) != 1 {
		t.Errorf("of the same case: %+v %+v %+v", c.Both, c.OnlyA, c.OnlyB)
	}
	b.Case = "another"
	if c = docket.Compare(a, b); c.SameCase || len(c.Both) != 2 || len(c.OnlyA)+len(c.OnlyB) != 0 {
		t.Errorf("of another case: %+v %+v %+v", c.Both, c.OnlyA, c.OnlyB)
	}
	if diff := cmp.Diff(docket.SeatTable(&a).Head[:5], []string{"juror", "role", "model", "position", "score"}); diff != "" {
		t.Error(diff)
	}
}

// TestKeeper: a damaged file is made again, a folder that cannot be written is no reason to stop, and after Close there is no index.
func TestKeeper(t *testing.T) {
	h := jurattest.New(t)
	h.Try(t, jury.MajorityVote)
	path := t.TempDir() + "/find.db"
	must.Do(t, os.WriteFile(path, []byte(strings.Repeat("damaged", 2000)), 0o600))
	for _, file := range []string{path, t.TempDir() + "/missing/find.db"} {
		k := &docket.Keeper{Ledger: h.Ledger, Path: file}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); k.Run(ctx) }()
		for behind := int64(1); behind > 0; time.Sleep(time.Millisecond) {
			_, state, err := k.Ready(t.Context())
			if err != nil {
				t.Fatal(file, err)
			}
			behind = state.Behind
		}
		stop()
		<-ended
		if _, _, err := k.Ready(t.Context()); err == nil {
			t.Error("a closed index is ready")
		}
	}
}

// TestRecordings: a line has what was seen, and the trials that its reader may see.
func TestRecordings(t *testing.T) {
	h := jurattest.New(t)
	took, text := 1500*time.Millisecond, `{"model":"m","messages":[]}`
	p := must.Get(observed.Payload(observed.Act{Recorder: "gate", RequestID: "r", At: jurattest.Start, Began: jurattest.Start.Add(-took), Elapsed: &took, ChainID: "recorded/bot/1", Agent: "bot", Vantage: evidence.Proxy,
		Fidelity: evidence.ByBytes, Protocol: "openai.chat", Ended: evidence.ClientGone, Request: &observed.Body{Bytes: int64(len(text)), SHA256: evidence.DigestOf([]byte(text)), Kept: []byte(text)}}))(t)
	on := must.Get(subject.FromRecords(nil, []subject.Exhibit{subject.NewExhibit(h.Seal(t, p))}, subject.Verification{Outcome: subject.NotProved}))(t)
	c := trial.Config{Ledger: h.Ledger, Keys: h.Keys, Settings: jurattest.Settings(jury.MajorityVote), Submitter: "ines", Now: h.Now}
	c.Jurors, c.Judge = jurattest.Panel()
	id := must.Get(trial.Submit(t.Context(), c, on))(t)
	trials := trial.NewIndex(h.Ledger, nil)
	must.Do(t, trials.Follow(t.Context()))
	k := &docket.Keeper{Ledger: h.Ledger}
	defer k.Close()
	get := func(string) string { return "" }
	by := &docket.Reader{States: func(list []trial.Summary) ([]api.State, error) { return []api.State{api.Queued}[:len(list)], nil }}
	list := must.Get(k.Recordings(t.Context(), get, trials, by))(t)
	if len(list.Recordings) != 1 || len(list.Recordings[0].Trials) != 1 || list.Recordings[0].Trials[0].ID != id || list.Recordings[0].Trials[0].State != api.Queued {
		t.Fatalf("%+v", list)
	}
	got := list.Recordings[0]
	got.Trials = nil
	want := api.Recording{Chain: "recorded/bot/1", Agents: []string{"bot"}, Recorders: []string{"gate"}, Models: []string{"m"}, Protocols: []string{"openai.chat"}, Vantages: []evidence.Vantage{evidence.Proxy},
		First: evidence.FormatTime(jurattest.Start.Add(-took)), Last: evidence.FormatTime(jurattest.Start), Acts: 1, Calls: 1, Broken: 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	by.Visible = func(*trial.Summary) bool { return false }
	if list, err := k.Recordings(t.Context(), get, trials, by); err != nil || len(list.Recordings[0].Trials) != 0 {
		t.Errorf("a hidden trial is shown: %+v, %v", list, err)
	}
	if _, err := k.Recordings(t.Context(), func(name string) string { return map[string]string{"text": "ab"}[name] }, trials, by); err == nil {
		t.Error("a text that is too short is accepted")
	}
}
