package verify_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/must"
	"jurat/jurattest"
	"jurat/jury"
	"jurat/verify"
)

// forger is a dishonest clerk who holds every key of a house and of its log.
type forger struct {
	t     *testing.T
	house *jurattest.House
	acts  []evidence.Payload // of an honest trial
	was   []evidence.Digest
}

func newForger(t *testing.T, method jury.Method) *forger {
	return newForgerOf(t, jurattest.New(t), jurattest.New(t).Try(t, method).Records)
}

// newForgerOf forges an honest trial of another house.
func newForgerOf(t *testing.T, house *jurattest.House, honest []*evidence.Record) *forger {
	f := &forger{t: t, house: house}
	for _, r := range honest {
		p := r.Payload  // with its record id, so that an act that is not changed keeps its digest
		p.Signers = nil // the forged act may have another actor
		f.acts = append(f.acts, p)
		f.was = append(f.was, r.Digest)
	}
	return f
}

// seal seals the acts again, with recomputed links and requests.
func (f *forger) seal() *evidence.Bundle {
	f.t.Helper()
	return f.house.Bundle(f.t, f.sealBy(func(p evidence.Payload) *evidence.Record { return f.house.Seal(f.t, p) })...)
}

func (f *forger) sealBy(seal func(evidence.Payload) *evidence.Record) []*evidence.Record {
	f.t.Helper()
	links := map[evidence.Digest]evidence.Digest{}
	var records []*evidence.Record
	for i, p := range f.acts {
		if p.ActionType == evidence.PhaseOpening {
			p.Response = f.announce(p, f.was[i], links)
		}
		p.PreviousRecord = renamed(links, p.PreviousRecord)
		p.RequestDigest = renamed(links, p.RequestDigest)
		p.Saw = slices.Clone(p.Saw)
		for j, d := range p.Saw {
			p.Saw[j] = renamed(links, d)
		}
		r := seal(p)
		links[f.was[i]] = r.Digest
		records = append(records, r)
	}
	return records
}

// announce updates the requests that an opening announces, if the honest opening announced them.
func (f *forger) announce(p evidence.Payload, was evidence.Digest, links map[evidence.Digest]evidence.Digest) jsontext.Value {
	f.t.Helper()
	body, err := jury.DecodeBody(p.ActionType, p.Response)
	if err != nil { // the forged opening announces nothing
		return p.Response
	}
	opening := body.(*jury.Opening)
	for i, asked := range opening.Requests {
		for _, answer := range f.acts {
			if answer.PreviousRecord != was || answer.RequestDigest != asked.RequestDigest {
				continue
			}
			var saw []evidence.Digest
			for _, d := range answer.Saw {
				if now, sealed := links[d]; sealed {
					saw = append(saw, now)
				}
			}
			request, err := opening.Request(asked.JurorID, p.Case, saw)
			if err != nil { // an act by a seat that the opening does not have
				continue
			}
			opening.Requests[i].RequestDigest = must.Get(request.Digest())(f.t)
			links[asked.RequestDigest] = opening.Requests[i].RequestDigest
		}
	}
	doc := must.Get(jury.EncodeBody(opening))(f.t)
	return doc
}

func renamed(links map[evidence.Digest]evidence.Digest, d evidence.Digest) evidence.Digest {
	if other, ok := links[d]; ok {
		return other
	}
	return d
}

// find returns the first act of a type, and its place.
func (f *forger) find(action evidence.ActionType) (*evidence.Payload, int) {
	f.t.Helper()
	i := slices.IndexFunc(f.acts, func(p evidence.Payload) bool { return p.ActionType == action })
	if i < 0 {
		f.t.Fatalf("the trial has no %s", action)
	}
	return &f.acts[i], i
}

// edit changes one member of an act's response.
func (f *forger) edit(action evidence.ActionType, change func(map[string]any)) {
	f.t.Helper()
	p, _ := f.find(action)
	var body map[string]any
	must.Do(f.t, json.Unmarshal(p.Response, &body))
	change(body)
	doc := must.Get(json.Marshal(body))(f.t)
	p.Response = jsontext.Value(doc)
}

func (f *forger) drop(i int) {
	f.acts = slices.Delete(f.acts, i, i+1)
	f.was = slices.Delete(f.was, i, i+1)
}

func TestHonestTrialIsProved(t *testing.T) {
	for _, method := range []jury.Method{jury.MajorityVote, jury.WeightedAverage, jury.FinalJudge} {
		h := jurattest.New(t)
		b := h.Bundle(t, h.Try(t, method).Records...)
		r := verify.Bundle(b, h.Options(t))
		if r.Outcome != verify.Proved {
			t.Errorf("%s: %s: %+v", method, r.Outcome, r.Details)
		}
		if f := r.Of(verify.NonRepudiation); f.Status != verify.NotProved || f.Rule != "custody" {
			t.Errorf("%s: non-repudiation with the operator's keys: %+v", method, f)
		}
		if r := verify.Bundle(b, verify.Options{UnsafeAllowMock: true}); r.Outcome != verify.NotProved {
			t.Errorf("%s without trust: %s, want %s", method, r.Outcome, verify.NotProved)
		}
	}
}

// A forgery is a change that a clerk with every key makes to an honest trial.
type forgery struct {
	name      string
	forge     func(f *forger)
	guarantee verify.Guarantee
	rule      string
	act       evidence.ActionType // the act that is named
}

func forgeries() []forgery {
	return []forgery{
		{"another verdict", func(f *forger) {
			f.edit(evidence.FinalJudgment, func(b map[string]any) { b["position"] = "unsafe_fail" })
		}, verify.Verdict, jury.RuleVerdict, evidence.FinalJudgment},
		{"another score", func(f *forger) {
			f.edit(evidence.FinalJudgment, func(b map[string]any) { b["score"] = 99 })
		}, verify.Verdict, jury.RuleVerdict, evidence.FinalJudgment},
		{"degradation concealed in another vote", func(f *forger) {
			f.edit(evidence.FinalJudgment, func(b map[string]any) { b["degraded"] = true })
		}, verify.Verdict, jury.RuleVerdict, evidence.FinalJudgment},
		{"another consensus", func(f *forger) {
			f.edit(evidence.ConsensusCheck, func(b map[string]any) {
				b["consensusCheck"].(map[string]any)["agreementLevel"] = 1
			})
		}, verify.Verdict, jury.RuleConsensus, evidence.ConsensusCheck},
		{"scores that do not sum", func(f *forger) {
			f.edit(evidence.Evaluation, func(b map[string]any) { b["totalScore"] = 100 })
		}, verify.Verdict, jury.RuleAnswer, evidence.Evaluation},
		{"an evaluation by another juror's name", func(f *forger) {
			f.edit(evidence.Evaluation, func(b map[string]any) {
				if b["jurorId"] == "juror-c" { // under load, juror-c can answer first
					b["jurorId"] = "juror-a"
				} else {
					b["jurorId"] = "juror-c"
				}
			})
		}, verify.Verdict, jury.RuleAnswer, evidence.Evaluation},
		{"settings changed on the way", func(f *forger) {
			for i := len(f.acts) - 1; i >= 0; i-- {
				if f.acts[i].ActionType == evidence.PhaseOpening {
					f.acts[i].Response = jsontext.Value(strings.Replace(string(f.acts[i].Response), `"threshold":2`, `"threshold":0.5`, 1))
					return
				}
			}
		}, verify.Verdict, jury.RuleSettings, evidence.PhaseOpening},
		{"an evaluation left out", func(f *forger) {
			_, i := f.find(evidence.Evaluation)
			f.drop(i)
		}, verify.Completeness, jury.RuleSequence, evidence.ConsensusCheck},
		{"an absence in the place of an evaluation", func(f *forger) {
			p, _ := f.find(evidence.Evaluation)
			body := jury.Absent{JurorID: p.AgentID, Phase: jury.Initial, Reason: jury.TimedOut, Detail: "late"}
			doc := must.Get(jury.EncodeBody(&body))(f.t)
			*p = evidence.Payload{ActionType: evidence.Absence, AgentID: "clerk", Timestamp: p.Timestamp, ChainID: p.ChainID,
				ChainPosition: p.ChainPosition, PreviousRecord: p.PreviousRecord, Case: p.Case, Response: doc}
		}, verify.Verdict, jury.RuleConsensus, evidence.ConsensusCheck},
		{"a statement that saw its own round", func(f *forger) {
			_, i := f.find(evidence.Statement)
			f.acts[i+1].Saw = append(slices.Clone(f.acts[i+1].Saw), f.was[i])
			f.acts[i+1].ChainPosition++
		}, verify.Simultaneity, jury.RuleSaw, evidence.Statement},
		{"a statement that was shown less", func(f *forger) {
			p, _ := f.find(evidence.Statement)
			p.Saw = p.Saw[:len(p.Saw)-1]
		}, verify.Simultaneity, jury.RuleRequest, evidence.PhaseOpening},
		{"a request that was not announced", func(f *forger) {
			p, _ := f.find(evidence.Statement)
			p.RequestDigest[0] ^= 1
		}, verify.Simultaneity, jury.RuleRequest, evidence.Statement},
		{"an announcement that does not rebuild", func(f *forger) {
			f.edit(evidence.PhaseOpening, func(b map[string]any) {
				b["requests"].([]any)[0].(map[string]any)["requestDigest"] = evidence.DigestOf(nil).String()
			})
		}, verify.Simultaneity, jury.RuleRequest, evidence.PhaseOpening},
		{"the closing cut off", func(f *forger) {
			_, i := f.find(evidence.TrialClosing)
			f.drop(i)
		}, verify.Completeness, "closing", ""},
		{"another count", func(f *forger) {
			f.edit(evidence.TrialClosing, func(b map[string]any) { b["acts"] = 3 })
		}, verify.Completeness, jury.RuleCompletion, evidence.TrialClosing},
		{"two judgments", func(f *forger) {
			p, i := f.find(evidence.FinalJudgment)
			second := *p
			second.RecordID = "019b76da-a826-72cf-a88c-da576ae5e204"
			f.acts = slices.Insert(f.acts, i+1, second)
			f.was = slices.Insert(f.was, i+1, evidence.DigestOf([]byte("nothing follows it")))
		}, verify.Completeness, jury.RuleSequence, evidence.FinalJudgment},
		{"another case's evidence", func(f *forger) {
			p, _ := f.find(evidence.Submission)
			p.Response = jsontext.Value(strings.Replace(string(p.Response), "Kassel", "Berlin", 1))
		}, verify.Completeness, "case", evidence.Submission},
		{"an act of another trial", func(f *forger) {
			p, _ := f.find(evidence.Statement)
			p.ChainID = "trial-01b76a11-0000-7000-8000-000000000000"
		}, verify.Completeness, "one-trial", evidence.Statement},
		{"a clerk relieved in the middle", func(f *forger) {
			p, _ := f.find(evidence.FinalJudgment)
			p.AgentID = "another-clerk"
		}, verify.Completeness, "one-clerk", evidence.FinalJudgment},
		{"an act of another case", func(f *forger) {
			p, _ := f.find(evidence.Statement)
			p.Case[0] ^= 1
		}, verify.Completeness, "one-trial", evidence.Statement},
		{"an act that claims to be older than what it names", func(f *forger) {
			p, _ := f.find(evidence.FinalJudgment)
			p.Timestamp = "2025-12-31T00:00:00.000Z"
		}, verify.Order, "claimed-time", evidence.FinalJudgment},
		{"members that nobody knows", func(f *forger) {
			f.edit(evidence.FinalJudgment, func(b map[string]any) { b["pardoned"] = true })
		}, verify.Completeness, jury.RuleBody, evidence.FinalJudgment},
	}
}

// TestForgedTrials: a clerk with every key seals trials that did not happen in this way. Signatures, time stamps and
// places in the log are all genuine. Only the rules of the trial detect the forgery.
func TestForgedTrials(t *testing.T) {
	for _, tt := range forgeries() {
		t.Run(tt.name, func(t *testing.T) {
			f := newForger(t, jury.FinalJudge)
			tt.forge(f)
			b := f.seal()
			r := verify.Bundle(b, f.house.Options(t))
			for _, g := range []verify.Guarantee{verify.Content, verify.Authentication, verify.Time, verify.Order} {
				if g == tt.guarantee {
					continue
				}
				if got := r.Of(g); got.Status != verify.Proved {
					t.Errorf("signatures, time stamps or places of the forgery are not valid, so the test tests something else: %+v", got)
				}
			}
			want := verify.Refuted
			if tt.act == "" {
				want = verify.NotProved
			}
			got := r.Of(tt.guarantee)
			if r.Outcome != want || got.Status != want || got.Rule != tt.rule {
				t.Fatalf("outcome %s, %s: %+v; want %s by rule %s", r.Outcome, tt.guarantee, got, want, tt.rule)
			}
			if tt.act != "" && actionOf(b, got.Record) != tt.act {
				t.Errorf("the report names %q, of type %q; want a %s", got.Record, actionOf(b, got.Record), tt.act)
			}
		})
	}
}

// TestHiddenBranch: the clerk opens a second branch of a trial and shows the better one.
func TestHiddenBranch(t *testing.T) {
	f := newForger(t, jury.MajorityVote)
	hidden := f.acts[1]
	hidden.RecordID = "019b76da-a826-72cf-a88c-da576ae5e204"
	var shown []*evidence.Record
	for i, p := range f.acts {
		if i == 2 { // the other branch began while the shown one continued
			f.house.Seal(t, hidden)
		}
		shown = append(shown, f.house.Seal(t, p))
	}
	r := verify.Bundle(f.house.Bundle(t, shown...), f.house.Options(t))
	if got := r.Of(verify.Completeness); got.Status != verify.Refuted || got.Rule != "gap" || got.Record != shown[2].Payload.RecordID {
		t.Errorf("completeness: %+v", got)
	}
}

// TestDecisionsInATrialsChain: people's decisions are in the trial's chain. They do not weaken its proof, even if the
// file leaves out decisions made after the closing.
func TestDecisionsInATrialsChain(t *testing.T) {
	h := jurattest.New(t)
	done := h.Try(t, jury.MajorityVote)
	last := done.Records[len(done.Records)-1]
	review := h.Seal(t, evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "user@example.com", Timestamp: "2026-01-01T00:00:02Z",
		OriginalResponseID: last.Payload.RecordID, ApprovalStatus: evidence.Approved, ChainID: done.ID, Case: last.Payload.Case, Saw: []evidence.Digest{last.Digest}})
	for _, records := range [][]*evidence.Record{done.Records, append(slices.Clone(done.Records), review)} {
		if got := verify.Bundle(h.Bundle(t, records...), h.Options(t)).Of(verify.Completeness); got.Status != verify.Proved {
			t.Errorf("%d records: %+v", len(records), got)
		}
	}
	stray := h.Seal(t, output("a"))
	other := h.Seal(t, evidence.Payload{ActionType: evidence.Delivery, AgentID: "a", Timestamp: "2026-01-01T00:00:02Z", Response: jsontext.Value(`"x"`),
		ChainID: done.ID, Case: evidence.DigestOf(nil), Saw: []evidence.Digest{last.Digest}})
	for _, r := range []*evidence.Record{stray, other} {
		got := verify.Bundle(h.Bundle(t, append(slices.Clone(done.Records), r)...), h.Options(t)).Of(verify.Completeness)
		if got.Status != verify.Refuted || got.Rule != "foreign" || got.Record != r.Payload.RecordID {
			t.Errorf("a foreign record: %+v", got)
		}
	}
}

func TestRerunIsCounted(t *testing.T) {
	h := jurattest.New(t)
	for _, want := range []string{"submission 1 of", "submission 2 of", "submission 3 of"} {
		r := verify.Bundle(h.Bundle(t, h.Try(t, jury.MajorityVote).Records...), h.Options(t))
		if got := r.Of(verify.Completeness); got.Status != verify.Proved || !strings.Contains(got.Reason, want) {
			t.Errorf("completeness: %+v; want %q", got, want)
		}
	}
}

func actionOf(b *evidence.Bundle, recordID string) evidence.ActionType {
	for _, r := range b.Records {
		if r.Payload.RecordID == recordID {
			return r.Payload.ActionType
		}
	}
	return ""
}
