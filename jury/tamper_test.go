package jury

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/test/must"
)

// expectDiscrepancy replays acts, one of which is changed.
func expectDiscrepancy(t *testing.T, what string, acts []Act, at evidence.Digest, rules ...string) {
	t.Helper()
	replayed, err := Replay(evidence.DigestOf(material), acts)
	var d *Discrepancy
	if !errors.As(err, &d) {
		t.Errorf("%s: got %v, want a discrepancy", what, err)
		return
	}
	if d.Act != at || len(rules) > 0 && !slices.Contains(rules, d.Rule) {
		t.Errorf("%s: got %v; want it at %s, of %v", what, d, at.Short(), rules)
	}
	must.Hold(t, replayed != nil && (!replayed.Finished || at == acts[len(acts)-1].Digest), "%s: replay went on", what)
}

func sealedTrial(t *testing.T) []Act {
	t.Helper()
	d := longTrial()
	run(t, d)
	return d.book().read(t)
}

func with(acts []Act, i int, change func(*Act)) []Act {
	acts = slices.Clone(acts)
	change(&acts[i])
	return acts
}

// TestEverySealedValueOfTheClerk changes each value in each act of the clerk, one at a time.
func TestEverySealedValueOfTheClerk(t *testing.T) {
	for _, method := range []Method{FinalJudge, MajorityVote, WeightedAverage, Median} {
		d := longTrial()
		if method == Median {
			d = dispute()
			d.Settings.JudgeReads = false
		}
		if method != FinalJudge {
			d.Judge, d.Settings.Judge = nil, nil
		}
		d.Settings.Method = method
		run(t, d)
		acts, tried := d.book().read(t), map[string]bool{}
		for i, a := range acts {
			rule := ""
			switch a.Body.(type) {
			case *Opening:
				if i == 1 {
					continue // its settings are what the others are held against: see below
				}
			case *Check:
				rule = RuleConsensus
			case *Judgment:
				rule = RuleVerdict
			case *Closing:
				rule = RuleCompletion
			default:
				continue
			}
			doc := must.Get(EncodeBody(a.Body))(t)
			for path, forged := range forgeries(doc) {
				body, err := DecodeBody(a.Type, forged)
				if err != nil {
					continue // cannot even be read
				}
				name := string(a.Type) + "." + path
				tried[name] = true
				tampered := with(acts, i, func(a *Act) { a.Body = body })
				switch {
				case rule == "" && (strings.HasPrefix(path, "settings") || path == "rules"):
					expectDiscrepancy(t, name, tampered, a.Digest, RuleSettings)
				case rule == "" && strings.HasPrefix(path, "requests"):
					expectDiscrepancy(t, name, tampered, a.Digest, RuleRequest)
				case rule == "" || path == "phase" || path == "roundNumber":
					expectDiscrepancy(t, name, tampered, a.Digest, RuleSequence)
				default:
					expectDiscrepancy(t, name, tampered, a.Digest, rule)
				}
			}
		}
		for _, name := range []string{"final_judgment.score", "final_judgment.position", "final_judgment.votes[0].totalScore",
			"final_judgment.degraded", "final_judgment.rationale", "final_judgment.method", "consensus_check.consensusCheck.agreementLevel",
			"consensus_check.consensusCheck.consensusReached", "consensus_check.consensusCheck.majorityPosition",
			"phase_opening.settings.threshold", "phase_opening.settings.seats[0].model", "trial_closing.acts"} {
			must.Hold(t, tried[name], "%s: %s was never tried", method, name)
		}
	}
}

// forgeries returns documents that each differ from doc in one value, by the path of that value.
func forgeries(doc jsontext.Value) map[string]jsontext.Value {
	out := map[string]jsontext.Value{}
	forge(doc, "", func(path string, forged jsontext.Value) { out[path] = forged })
	return out
}

func forge(v jsontext.Value, path string, yield func(string, jsontext.Value)) {
	switch v.Kind() {
	case '{':
		object := parts[map[string]jsontext.Value](v)
		for name, value := range object {
			forge(value, strings.TrimPrefix(path+"."+name, "."), func(p string, forged jsontext.Value) {
				object[name] = forged
				yield(p, encoded(object))
				object[name] = value
			})
		}
	case '[':
		list := parts[[]jsontext.Value](v)
		for i, value := range list {
			forge(value, fmt.Sprintf("%s[%d]", path, i), func(p string, forged jsontext.Value) {
				list[i] = forged
				yield(p, encoded(list))
				list[i] = value
			})
		}
		if len(list) > 0 {
			yield(path+"[-]", encoded(list[1:]))
		}
	case '0':
		yield(path, jsontext.Value(map[bool]string{true: "8", false: "7"}[string(v) == "7"]))
	case 't':
		yield(path, jsontext.Value("false"))
	case 'f':
		yield(path, jsontext.Value("true"))
	case 'n':
		yield(path, jsontext.Value(`"unsafe_fail"`))
	case '"':
		text := parts[string](v)
		if d, err := evidence.ParseDigest(text); err == nil {
			d[0] ^= 1
			yield(path, encoded(d))
			return
		}
		yield(path, encoded(text+"x"))
	}
}

func encoded(v any) jsontext.Value {
	doc, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic(err)
	}
	return doc
}

// TestFirstSettings changes the settings to which all later settings are compared. No forgery may pass, but the act that
// contradicts it may be a later one.
func TestFirstSettings(t *testing.T) {
	acts := sealedTrial(t)
	doc := must.Get(EncodeBody(acts[1].Body))(t)
	tried := 0
	for path, forged := range forgeries(doc) {
		body, err := DecodeBody(evidence.PhaseOpening, forged)
		if err != nil {
			continue
		}
		tried++
		tampered := with(acts, 1, func(a *Act) { a.Body = body })
		var d *Discrepancy
		_, err = Replay(evidence.DigestOf(material), tampered)
		must.Hold(t, errors.As(err, &d), "%s: %v", path, err)
	}
	must.Hold(t, tried >= 30, "only %d forgeries could be read", tried)
}

// TestWhatSeatsSayOfThemselves changes the values of a juror's act beside the opinion itself.
func TestWhatSeatsSayOfThemselves(t *testing.T) {
	acts := sealedTrial(t)
	tried := 0
	for i, a := range acts {
		if a.Type != evidence.Evaluation && a.Type != evidence.Statement && a.Type != evidence.Absence {
			continue
		}
		doc := must.Get(EncodeBody(a.Body))(t)
		for path, forged := range forgeries(doc) {
			own := strings.HasSuffix(path, "rationale") || strings.HasSuffix(path, "reasoning") || strings.HasSuffix(path, "statement") ||
				strings.HasSuffix(path, "confidence") || path == "detail"
			if _, _, missing := Missing(a.Body); own && (!missing || a.Type == evidence.Absence) {
				continue // its own words, which only its signature vouches for
			}
			body, err := DecodeBody(a.Type, forged)
			if err != nil {
				continue
			}
			tried++
			name := fmt.Sprintf("%s at %d: %s", a.Type, a.Position, path)
			expectDiscrepancy(t, name, with(acts, i, func(a *Act) { a.Body = body }), a.Digest, RuleAnswer, RuleSequence)
		}
	}
	must.Hold(t, tried >= 60, "only %d forgeries could be read", tried)
}

func TestPositionChangedIsRecomputed(t *testing.T) {
	acts := sealedTrial(t)
	tried := map[bool]bool{}
	for i, a := range acts {
		s, ok := a.Body.(*Statement)
		if !ok {
			continue
		}
		forged := clone(*s)
		forged.PositionChanged = !s.PositionChanged
		tried[s.PositionChanged] = true
		expectDiscrepancy(t, "positionChanged", with(acts, i, func(a *Act) { a.Body = &forged }), a.Digest, RuleAnswer)
	}
	must.Hold(t, len(tried) == 2, "the trial has no statement of each kind")
}

func TestLinksAreRecomputed(t *testing.T) {
	acts := sealedTrial(t)
	stranger := evidence.DigestOf([]byte("stranger"))
	for i, a := range acts {
		if i == 0 {
			continue
		}
		try := func(what, rule string, change func(*Act)) {
			t.Helper()
			expectDiscrepancy(t, fmt.Sprintf("%s of %s at %d", what, a.Type, a.Position), with(acts, i, change), a.Digest, rule)
		}
		try("previous", RulePrevious, func(a *Act) { a.Previous = stranger })
		try("saw one more", RuleSaw, func(a *Act) { a.Saw = append(slices.Clone(a.Saw), stranger) })
		if len(a.Saw) > 0 {
			try("saw one less", RuleSaw, func(a *Act) { a.Saw = a.Saw[1:] })
		}
		if len(a.Saw) > 1 {
			try("saw in another order", RuleSaw, func(a *Act) {
				a.Saw = slices.Clone(a.Saw)
				a.Saw[0], a.Saw[1] = a.Saw[1], a.Saw[0]
			})
		}
		try("position", RulePosition, func(a *Act) { a.Position++ })
		try("request", RuleRequest, func(a *Act) { a.Request = stranger })
		try("actor", RuleSequence, func(a *Act) { a.Actor = "somebody" })
		try("no body", RuleBody, func(a *Act) { a.Body = nil })
		try("nil body", RuleBody, func(a *Act) { a.Body = newNil(a.Body) })
		try("other type", RuleBody, func(a *Act) { a.Type = evidence.Delivery })
		expectDiscrepancy(t, "digest of another", with(acts, i, func(a *Act) { a.Digest = acts[i-1].Digest }), acts[i-1].Digest, RuleSequence)
		expectDiscrepancy(t, "no digest", with(acts, i, func(a *Act) { a.Digest = evidence.Digest{} }), evidence.Digest{}, RuleSequence)
	}
	expectDiscrepancy(t, "submission", with(acts, 0, func(a *Act) { a.Position = 2 }), acts[0].Digest, RulePosition)
	expectDiscrepancy(t, "submission", with(acts, 0, func(a *Act) { a.Digest = stranger }), acts[1].Digest, RulePrevious)
}

func newNil(body any) any {
	switch body.(type) {
	case *Opening:
		return (*Opening)(nil)
	case *Evaluation:
		return (*Evaluation)(nil)
	case *Statement:
		return (*Statement)(nil)
	case *Absent:
		return (*Absent)(nil)
	case *Check:
		return (*Check)(nil)
	case *Opinion:
		return (*Opinion)(nil)
	case *Judgment:
		return (*Judgment)(nil)
	}
	return (*Closing)(nil)
}

// TestStatementThatSawItsOwnRound: a juror saw a statement of its own round. Simultaneity must be refuted.
func TestStatementThatSawItsOwnRound(t *testing.T) {
	acts := sealedTrial(t)
	var before *Act
	for i, a := range acts {
		if a.Type != evidence.Statement {
			continue
		}
		if before != nil && before.Position == a.Position {
			peer := before.Digest
			forged := with(acts, i, func(a *Act) { a.Saw, a.Position = append(slices.Clone(a.Saw), peer), a.Position+1 })
			expectDiscrepancy(t, "saw its own round", forged, a.Digest, RuleSaw)
		}
		before = &acts[i]
	}
}

// TestOrder drops, repeats and swaps acts.
func TestOrder(t *testing.T) {
	acts := sealedTrial(t)
	for i := 1; i < len(acts)-1; i++ {
		dropped := slices.Delete(slices.Clone(acts), i, i+1)
		var d *Discrepancy
		if _, err := Replay(evidence.Digest{}, dropped); !errors.As(err, &d) {
			t.Errorf("without act %d: %v", i, err)
		}
		repeated := slices.Insert(slices.Clone(acts), i+1, acts[i])
		expectDiscrepancy(t, "repeated", repeated, acts[i].Digest, RuleSequence)
		again := acts[i]
		again.Digest[0] ^= 1
		expectDiscrepancy(t, "sealed anew", slices.Insert(slices.Clone(acts), i+1, again), again.Digest)
		swapped := slices.Clone(acts)
		swapped[i], swapped[i+1] = swapped[i+1], swapped[i]
		_, err := Replay(evidence.Digest{}, swapped)
		arrival := isAnswer(acts[i]) && isAnswer(acts[i+1]) // answers may arrive in any order
		must.Hold(t, errors.As(err, &d) != arrival, "acts %d and %d swapped: %v", i, i+1, err)
	}
	late := acts[2]
	late.Digest[0] ^= 1
	expectDiscrepancy(t, "after the closing", append(slices.Clone(acts), late), late.Digest, RuleSequence)
	expectDiscrepancy(t, "no beginning", acts[2:], acts[2].Digest, RuleSequence)
	expectDiscrepancy(t, "submission behind the opening", slices.Concat(acts[1:2], acts[:1]), acts[0].Digest, RuleSequence)
	expectDiscrepancy(t, "no submission", with(acts[1:], 0, func(a *Act) { a.Previous = evidence.Digest{} }), acts[1].Digest, RulePrevious)
	expectDiscrepancy(t, "submission without a digest", with(acts, 0, func(a *Act) { a.Digest = evidence.Digest{} }), evidence.Digest{}, RuleSequence)
	speech := slices.IndexFunc(acts, func(a Act) bool { return a.Type == evidence.Statement })
	evaluation := acts[slices.IndexFunc(acts, func(a Act) bool { return a.Type == evidence.Evaluation })]
	other := with(acts, speech, func(a *Act) { a.Type, a.Body = evaluation.Type, evaluation.Body })
	expectDiscrepancy(t, "evaluation in a round", other, acts[speech].Digest, RuleSequence)
	expectDiscrepancy(t, "two submissions", slices.Insert(slices.Clone(acts), 1, acts[0]), acts[0].Digest, RuleSequence)
}

func isAnswer(a Act) bool {
	switch a.Type {
	case evidence.Evaluation, evidence.Statement, evidence.Absence, evidence.JudgeOpinion:
		return true
	}
	return false
}

// TestRoundsStopAndGoOn seals trials with one round too many and one too few. Each is consistent in itself, but
// contradicts the announced settings.
func TestRoundsStopAndGoOn(t *testing.T) {
	positions := [][]Position{{SafePass, SafePass, UnsafeFail}, {SafePass, SafePass, UnsafeFail}, {SafePass, SafePass, SafePass}}
	for _, tt := range []struct{ announced, applied float64 }{{0.67, 1}, {1, 0.67}} {
		d := seated(MajorityVote, scripted(positions)...)
		d.Settings.Threshold = tt.applied
		run(t, d)
		acts := d.book().read(t)
		at := -1
		for i, a := range acts {
			switch body := a.Body.(type) {
			case *Opening:
				body.Settings.Threshold = tt.announced
			case *Check:
				body.ConsensusCheck = Consensus([]Position{SafePass, SafePass, body.third()}, tt.announced, body.Phase == Discussion)
				if at < 0 {
					at = i + 1
				}
			}
		}
		expectDiscrepancy(t, fmt.Sprintf("announced %v, applied %v", tt.announced, tt.applied), acts, acts[at].Digest, RuleSequence)
	}
}

// third returns the position of that trial's third juror at this check.
func (c *Check) third() Position {
	if c.RoundNumber == 2 {
		return SafePass
	}
	return UnsafeFail
}

// TestHiddenFallback: a clerk seals an absence in the place of a stand-in, and the reverse.
func TestHiddenFallback(t *testing.T) {
	acts := sealedTrial(t)
	i := slices.IndexFunc(acts, func(a Act) bool { return a.Type == evidence.Absence && a.Body.(*Absent).Phase == Initial })
	forged := *acts[i].Body.(*Absent)
	forged.Reason = Blocked
	expectDiscrepancy(t, "blocked without stand-in", with(acts, i, func(a *Act) { a.Body = &forged }), acts[i].Digest, RuleAnswer)

	i = slices.IndexFunc(acts, func(a Act) bool { return a.Type == evidence.Statement && a.Actor == "juror-0" })
	s := clone(*acts[i].Body.(*Statement))
	s.Position = NeedsReview
	s.Statement, s.Reasoning, s.PositionChanged = blockedStatement, blockedRationale, false
	s.UpdatedEvaluation = &Evaluation{JurorID: "juror-0", Phase: Discussion, RoundNumber: 1, RoleName: "role 0", RoleFocus: "focus",
		Opinion: Opinion{Position: NeedsReview, AxisScores: Scores{"task_completion": 20}, TotalScore: 50, Confidence: 0.5, Rationale: blockedRationale, Findings: []Finding{}}, Fallback: true}
	expectDiscrepancy(t, "stand-in for who has an evaluation", with(acts, i, func(a *Act) { a.Body = &s }), acts[i].Digest, RuleAnswer)
}

// TestRequestsAreRebuilt replays with the digest of other evidence.
func TestRequestsAreRebuilt(t *testing.T) {
	acts := sealedTrial(t)
	_, err := Replay(evidence.DigestOf([]byte(`{"agentCard":{},"conversation":[1]}`)), acts)
	var d *Discrepancy
	must.Hold(t, errors.As(err, &d) && d.Act == acts[1].Digest && d.Rule == RuleRequest, "%v", err)
}

// TestRejectedActChangesNothing applies a forged act, and then the true one.
func TestRejectedActChangesNothing(t *testing.T) {
	tally := NewTally(evidence.DigestOf(material))
	for _, a := range sealedTrial(t)[1:] {
		forged := a
		forged.Position += 3
		must.Need(t, tally.Apply(forged) != nil, "a forged act was accepted")
		must.Do(t, tally.Apply(a))
	}
	must.Hold(t, tally.State().Finished, "not finished")
}
