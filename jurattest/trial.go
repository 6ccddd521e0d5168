package jurattest

import (
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/subject"
	"jurat/internal/trial"
	"jurat/jury"
)

// Case is a small case for tests in which the content does not matter.
func Case(t testing.TB) *subject.Case {
	t.Helper()
	c, err := subject.New(
		[]byte(`{"name":"Parcel agent","description":"Tracks parcels.","version":"1.0.0","url":"https://parcels.example/a2a",
			"protocolVersion":"0.3.0","capabilities":{},"defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],
			"skills":[{"id":"track","name":"Track","description":"Says where a parcel is.","tags":["parcel"]}]}`),
		[]byte(`[{"role":"user","content":"Where is parcel 17?"},
			{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"get_parcel","arguments":"{\"id\":17}"}}]},
			{"role":"tool","tool_call_id":"c1","content":"{\"id\":17,\"status\":\"in transit\",\"city\":\"Kassel\"}"},
			{"role":"assistant","content":"Parcel 17 is in transit, now in Kassel."}]`))
	check(t, err)
	return c
}

// Panel returns three scripted jurors who disagree, and a scripted judge. The discussion changes one juror's
// position. They answer one after the other, so that the order of the log is always the same.
func Panel() (jurors []jury.Juror, judge jury.Juror) {
	moved := Opine(jury.SafePass, 80)
	jurors = []jury.Juror{
		&Juror{Opinion: Opine(jury.SafePass, 90)},
		&Juror{Opinion: Opine(jury.UnsafeFail, 20), Delay: 10 * time.Millisecond, Speeches: []jury.Speech{
			{Statement: "The others have a point.", Position: jury.SafePass, Reasoning: "What they quote stands there.", Updated: &moved}}},
		&Juror{Opinion: Opine(jury.SafePass, 80), Delay: 20 * time.Millisecond},
	}
	return jurors, &Juror{Opinion: Opine(jury.SafePass, 85)}
}

// Settings returns the settings of Panel for a method.
func Settings(method jury.Method) jury.Settings {
	seat := func(id, role string) jury.Seat {
		return jury.Seat{JurorID: id, RoleName: role, Provider: "script", Model: "scripted", Parameters: jsontext.Value("{}"),
			Template: evidence.DigestOf([]byte("script"))}
	}
	s := jury.Settings{Seats: []jury.Seat{seat("juror-a", "First"), seat("juror-b", "Second"), seat("juror-c", "Third")},
		Rubric: jury.DefaultRubric(), Collaborative: true, MaxRounds: 2, Threshold: 2, Method: method}
	if method == jury.FinalJudge {
		s.Judge = new(seat("judge", "Judge"))
	}
	return s
}

// Try conducts a trial of Case before Panel.
func (h *House) Try(t testing.TB, method jury.Method) *trial.Trial {
	t.Helper()
	jurors, judge := Panel()
	return h.TryBefore(t, Settings(method), jurors, judge)
}

// TryBefore conducts a trial of Case before any panel. The judge is asked if the settings have one.
func (h *House) TryBefore(t testing.TB, settings jury.Settings, jurors []jury.Juror, judge jury.Juror) *trial.Trial {
	t.Helper()
	if settings.Judge == nil {
		judge = nil
	}
	done, err := trial.Run(t.Context(), trial.Config{Ledger: h.Ledger, Keys: h.Keys, Settings: settings, Jurors: jurors,
		Judge: judge, Now: h.Now, Random: h.Random}, Case(t))
	check(t, err)
	return done
}
