package docket_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jurat/api"
	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/docket"
	"jurat/internal/must"
	"jurat/internal/subject"
	"jurat/internal/trial"
	"jurat/jurattest"
	"jurat/jury"
)

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
