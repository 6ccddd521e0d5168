package verify_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/jurattest"
	"jurat/verify"
	"jurat/verify/counted"
	"jurat/verify/trust"
)

// TestCountedCalls: what the operator states of the number of recorded calls is counted again. Records that contradict it refute it, and so does another file
// than the one that it names; what a file does not have refutes nothing.
func TestCountedCalls(t *testing.T) {
	usage := strings.Replace(anAnswer, `{"total_tokens":9}`, `{"prompt_tokens":5,"completion_tokens":4,"total_tokens":9}`, 1)
	for _, tt := range []struct {
		name    string
		count   int64
		context string
		of      verify.Guarantee
		status  verify.Status
		answer  counted.Answer
	}{
		{"all of them", 1, "", verify.Vantage, verify.Proved, counted.Agrees},
		{"with the file", 1, `"file"`, verify.Content, verify.Proved, counted.Agrees},
		{"fewer than there are", 0, "", verify.Vantage, verify.Refuted, counted.Contradicted},
		{"more than there are", 2, "", verify.Vantage, verify.Proved, counted.Part},
		{"with another file", 1, `"fill"`, verify.Content, verify.Refuted, counted.Contradicted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := jurattest.New(t)
			h.Seal(t, evidence.Payload{ActionType: evidence.RecorderEvent, AgentID: "gate", Timestamp: evidence.FormatTime(jurattest.Start), ChainID: "recorder/gate", Response: jsontext.Value(`{"calls":0,"event":"heartbeat","since":"` + evidence.FormatTime(jurattest.Start) + `"}`)})
			r := h.Seal(t, payloadOf(t, observedCall("call-1", "openai.chat", aChat, usage)))
			body := operator.UsageComparisonBody{By: "ines", File: operator.UsageFile{Bytes: 4, Digest: evidence.DigestOf([]byte("file")), Format: "calls, CSV"},
				Scope: operator.UsageScope{From: evidence.FormatTime(jurattest.Start), To: evidence.FormatTime(jurattest.Start.Add(time.Hour)), Size: 2}}
			var sum counted.Sum
			one, is := counted.Of(&r.Payload, r.Digest, 0)
			if !is {
				t.Fatal("it is no call")
			}
			if tt.count > 0 {
				sum.Add(&one)
			}
			body.Calls = sum.Calls()
			body.Calls.Count = tt.count
			response, err := operator.Encode(body)
			if err != nil {
				t.Fatal(err)
			}
			act := evidence.Payload{ActionType: evidence.UsageComparison, AgentID: "operator", Timestamp: evidence.FormatTime(jurattest.Start.Add(time.Minute)), Response: response}
			var apart []string
			if tt.context != "" {
				act.Context, apart = jsontext.Value(tt.context), []string{"/context"}
			}
			b := h.Bundle(t, r, h.Seal(t, act, apart...))
			report := verify.Bundle(b, h.Options(t))
			if got := report.Of(tt.of); got.Status != tt.status || (got.Rule == "counted") != (tt.status == verify.Refuted) {
				t.Errorf("%+v", got)
			}
			if (report.Outcome == verify.Refuted) != (tt.status == verify.Refuted) || len(report.Compared) != 1 || report.Compared[0].Answer != tt.answer {
				t.Errorf("%s, %+v", report.Outcome, report.Compared)
			}
			if reason := report.Of(verify.Vantage).Reason; tt.answer == counted.Agrees && !strings.Contains(reason, "usage exports (1 act)") {
				t.Errorf("the answer to vantage does not tell of it: %s", reason)
			}
			if len(apart) > 0 {
				b.Records[1].Disclosures = nil
				if got := verify.Bundle(b, h.Options(t)); got.Outcome == verify.Refuted {
					t.Errorf("the file is withheld, and refuted: %+v", got.Details)
				}
			}
		})
	}
}

// comparison is an operator's act of no calls, of the log's first size records; digest is of the calls.
func comparison(t *testing.T, size int64, digest evidence.Digest) evidence.Payload {
	t.Helper()
	response, err := operator.Encode(operator.UsageComparisonBody{By: "ines", Calls: operator.UsageCalls{Digest: digest}, File: operator.UsageFile{Digest: evidence.DigestOf(nil), Format: "calls, CSV"},
		Scope: operator.UsageScope{From: evidence.FormatTime(jurattest.Start), To: evidence.FormatTime(jurattest.Start.Add(time.Hour)), Size: size}})
	if err != nil {
		t.Fatal(err)
	}
	return evidence.Payload{ActionType: evidence.UsageComparison, AgentID: "operator", Timestamp: evidence.FormatTime(jurattest.Start.Add(time.Minute)), Response: response}
}

// TestCountedByItself: an act that contradicts itself is refuted without a call, too: one that counts calls of a time after it, and one of no calls with the digest of some. Where no log
// that the reader knows shows the places, nothing is refuted by them.
func TestCountedByItself(t *testing.T) {
	none, other := evidence.DigestOf(nil), evidence.DigestOf([]byte("calls"))
	for _, tt := range []struct {
		name   string
		size   int64
		digest evidence.Digest
		known  bool // the log
		want   verify.Status
	}{
		{"honest", 1, none, true, ""},
		{"honest, of an unknown log", 1, none, false, ""},
		{"more records than there were", 2, none, true, verify.Refuted},
		{"more records than there were, of an unknown log", 2, none, false, verify.NotProved},
		{"no calls, with a digest", 1, other, true, verify.Refuted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := jurattest.New(t)
			h.Seal(t, output("a"))
			b := h.Bundle(t, h.Seal(t, comparison(t, tt.size, tt.digest)))
			o := h.Options(t)
			if !tt.known {
				known := *o.Trust
				known.Logs, o.Trust = nil, &known
			}
			report := verify.Bundle(b, o)
			if got := report.Of(verify.Vantage); got.Rule == "counted" && got.Status != tt.want || (got.Rule == "counted") != (tt.want != "") {
				t.Errorf("%+v", got)
			}
			if (report.Outcome == verify.Refuted) != (tt.want == verify.Refuted) {
				t.Errorf("%s: %+v", report.Outcome, report.Details)
			}
		})
	}
}

// TestCountedOfOthers: an act that nothing shows to be the operator's, or to be of the log that has the calls, refutes nothing: anybody can put one beside honest records, and an operator
// can have two logs.
func TestCountedOfOthers(t *testing.T) {
	for name, change := range map[string]func(act *evidence.Record, o *verify.Options){
		"its place is not shown": func(act *evidence.Record, _ *verify.Options) { act.Log = nil },
		"its key is not known": func(act *evidence.Record, o *verify.Options) {
			known := *o.Trust
			known.Keys = slices.DeleteFunc(slices.Clone(known.Keys), func(k trust.Key) bool { return k.Role == evidence.RoleOperator })
			o.Trust = &known
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := jurattest.New(t)
			r := h.Seal(t, payloadOf(t, observedCall("call-1", "openai.chat", aChat, anAnswer)))
			b := h.Bundle(t, r, h.Seal(t, comparison(t, 1, evidence.DigestOf(nil))))
			o := h.Options(t)
			if got := verify.Bundle(b, o); got.Outcome != verify.Refuted {
				t.Fatalf("the operator's own is %s", got.Outcome)
			}
			change(b.Records[1], &o)
			if got := verify.Bundle(b, o); got.Outcome != verify.NotProved || got.Of(verify.Vantage).Status != verify.NotProved || len(got.Compared) > 0 {
				t.Errorf("%s: %+v", got.Outcome, got.Details)
			}
		})
	}
}

// TestSecondVerifierDoesNotCount: it gives no answer to a file in which calls are to be counted, also where the act stands alone and may contradict itself.
func TestSecondVerifierDoesNotCount(t *testing.T) {
	h := jurattest.New(t)
	b := h.Bundle(t, h.Seal(t, comparison(t, 1, evidence.DigestOf([]byte("calls")))))
	file, err := b.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	write(t, folder, "act.jurat", file)
	run := exec.Command(python(t), filepath.Join("..", "testdata", "second-verifier", "verify.py"), filepath.Join(folder, "act.jurat"))
	said, err := run.CombinedOutput()
	if run.ProcessState == nil || run.ProcessState.ExitCode() != 2 || !strings.Contains(string(said), "the number of recorded calls") {
		t.Errorf("%v: %s", err, said)
	}
}
