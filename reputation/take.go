package reputation

import (
	"cmp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/jury"
	"jurat/verify"
	"jurat/verify/trust"
)

// taken is a verified file from which facts are taken.
type taken struct {
	g          *Gatherer
	report     *verify.Report
	origin     string
	identities map[signer]trust.Identified
	times      map[string]trust.TimeOf
	doubts     map[string][]verify.Finding // by record id; "": about all
}

type signer struct {
	role evidence.Role
	name string
	key  evidence.KeyID
}

// mustBeProved are the guarantees about single records without which nothing counts.
var mustBeProved = []verify.Guarantee{verify.Content, verify.Authentication, verify.Time, verify.Order}

// standing says when a record is proved to have existed, and by which rule it does not count.
func (f *taken) standing(r *evidence.Record) Standing {
	rule := f.against(r.Payload.RecordID, mustBeProved)
	s := Standing{Rule: rule, Proved: rule == ""}
	if t, proved := f.times[r.Payload.RecordID]; proved {
		s.Time = seconds(t.Time)
		if t.Clock == trust.Independent {
			s.Independent = s.Time
		} else if t.Independent != nil {
			s.Independent = seconds(t.Independent.Time)
		}
	}
	return s
}

// against returns the guarantee and the rule of the first finding about a record or about all; "": there is none.
func (f *taken) against(id string, asked []verify.Guarantee) string {
	for _, g := range asked {
		for _, one := range slices.Concat(f.doubts[id], f.doubts[""]) {
			if one.Guarantee == g {
				return string(g) + "/" + one.Rule
			}
		}
		if answer := f.report.Of(g); answer.Status != verify.Proved && answer.Rule == "" {
			return string(g) + "/" // not asked, or without a finding
		}
	}
	return ""
}

func (f *taken) place(r *evidence.Record) Place {
	p := Place{Digest: r.Digest, ID: r.Payload.RecordID}
	if f.ordered(r) {
		p.Origin, p.Index = f.origin, r.Log.Index
	}
	return p
}

// ordered reports whether the record's place in the log, and so its counts there, are proved.
func (f *taken) ordered(r *evidence.Record) bool {
	return r.Log != nil && f.origin != "" && f.against(r.Payload.RecordID, []verify.Guarantee{verify.Order}) == ""
}

// rater says who stands behind the signatures of a record.
func (f *taken) rater(r *evidence.Record) Rater {
	made := Rater{Role: r.Payload.Role(), Name: r.Payload.Actor()}
	for _, s := range r.Payload.Signers {
		if one, known := f.identities[signer{made.Role, made.Name, s.KeyID}]; known {
			made.By, made.CA = string(one.By), one.CA
			break
		}
	}
	return made
}

// record keeps what a single record says.
func (f *taken) record(r *evidence.Record) {
	p := &r.Payload
	ofAgent := p.Role() == evidence.RoleAgent && p.Actor() == f.g.identity.Name || p.ActionType.Observes() && p.Observed != nil && p.Observed.Agent == f.g.identity.Name
	if !ofAgent {
		f.g.others[r.Digest] = true
	}
	switch {
	case p.Role() == evidence.RoleAgent && p.Actor() == f.g.identity.Name:
		f.count(r, OfActor, r.Log.Counts().ActorSeq)
		f.g.keepRecord(f.fact(r))
	case p.OnAgent() && p.Observed.Agent == f.g.identity.Name: // the log counts it for the recorder
		made := f.fact(r)
		made.Recorder = p.Actor()
		f.g.keepRecord(made)
	case p.ActionType == evidence.KeyEvent:
		f.keyEvent(r)
	case p.ActionType == evidence.HumanReview && f.report.Kind != verify.Trial:
		f.review(r, !strings.HasPrefix(p.ChainID, evidence.TrialPrefix))
	}
	if f.isSubject(r) {
		f.count(r, OfSubject, r.Log.Counts().SubjectSeq)
	}
}

func (f *taken) fact(r *evidence.Record) *RecordFact {
	who := f.rater(r)
	made := &RecordFact{Place: f.place(r), Standing: f.standing(r), By: who.By, CA: who.CA, Keys: []evidence.KeyID{}}
	for _, s := range r.Payload.Signers {
		made.Keys = append(made.Keys, s.KeyID)
	}
	return made
}

// isSubject reports whether the log says that the record judges an agent of this name.
func (f *taken) isSubject(r *evidence.Record) bool {
	counts := r.Log.Counts()
	return counts.SubjectSeq > 0 && counts.Subject == evidence.SubjectTag(evidence.RoleAgent, f.g.identity.Name)
}

func (f *taken) count(r *evidence.Record, of CountOf, seq int64) {
	if f.ordered(r) {
		f.g.counted[CountedFact{Origin: f.origin, Index: r.Log.Index, Of: of, Seq: seq, Digest: r.Digest}] = true
	}
}

// keyEvent keeps a revocation of a key of an agent with the name.
func (f *taken) keyEvent(r *evidence.Record) {
	var body struct {
		Event operator.KeyChange `json:"event"`
		From  string             `json:"from"`
		KeyID evidence.KeyID     `json:"key_id"`
		Name  string             `json:"name"`
		Role  evidence.Role      `json:"role"`
	}
	if json.Unmarshal(r.Payload.Response, &body) != nil || body.Event != operator.KeyRevoked || body.Role != evidence.RoleAgent || body.Name != f.g.identity.Name {
		return
	}
	from, err := evidence.ParseTime(body.From)
	if err != nil {
		return
	}
	made := &RevocationFact{Place: f.place(r), Standing: f.standing(r), KeyID: body.KeyID, From: seconds(from)}
	if known, fresh := kept(f.g.revocations, made.Digest, made); !fresh {
		merge(&known.Place, &known.Standing, made.Place, made.Standing)
	}
}

// kept keeps a fact, unless the map has one of the same record: then it returns that.
func kept[T any](list map[evidence.Digest]*T, d evidence.Digest, made *T) (known *T, fresh bool) {
	if known = list[d]; known != nil {
		return known, false
	}
	list[d] = made
	return made, true
}

// review keeps a person's decision on a record. beside says that it is known to decide on no trial.
func (f *taken) review(r *evidence.Record, beside bool) {
	p := &r.Payload
	if beside && f.isSubject(r) {
		f.g.beside[r.Digest] = true
	}
	made := &ReviewFact{Place: f.place(r), Standing: f.standing(r), Status: p.ApprovalStatus, Original: p.OriginalResponseID, Names: []evidence.Digest{}, Reviewer: f.rater(r)}
	if !p.PreviousRecord.IsZero() {
		made.Names = append(made.Names, p.PreviousRecord)
	}
	made.Names = append(made.Names, p.Saw...)
	if made.Proved { // against the record that it is about: a missing one is not held against it
		for _, one := range f.doubts[p.RecordID] {
			if one.Guarantee == verify.HumanReview && one.Status == verify.Refuted {
				made.Proved, made.Rule = false, string(one.Guarantee)+"/"+one.Rule
			}
		}
	}
	if known, fresh := kept(f.g.reviews, made.Digest, made); !fresh {
		merge(&known.Place, &known.Standing, made.Place, made.Standing)
		if known.Reviewer.By == "" {
			known.Reviewer = made.Reviewer
		}
	}
}

func (g *Gatherer) keepRecord(made *RecordFact) {
	if known, fresh := kept(g.records, made.Digest, made); !fresh {
		merge(&known.Place, &known.Standing, made.Place, made.Standing)
		if known.By == "" {
			known.By, known.CA = made.By, made.CA
		}
	}
}

// merge joins what two files prove of one record. Anybody can damage a copy, so the better one counts, and of two places the first.
func merge(place *Place, s *Standing, other Place, b Standing) {
	if place.Origin == "" || other.Origin != "" && cmp.Or(cmp.Compare(other.Origin, place.Origin), cmp.Compare(other.Index, place.Index)) < 0 {
		*place = other
	}
	made := Standing{Time: earlier(s.Time, b.Time), Independent: earlier(s.Independent, b.Independent), Proved: s.Proved || b.Proved}
	if !made.Proved {
		made.Rule = min(s.Rule, b.Rule)
	}
	*s = made
}

// earlier returns the earlier of two times, of which 0 stands for no time.
func earlier(a, b int64) int64 {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}

// trial keeps what the case file of a trial says, if it is one of an agent with the name.
func (f *taken) trial(records []*evidence.Record, bundle func() *evidence.Bundle) {
	first := slices.IndexFunc(records, func(r *evidence.Record) bool { return r.Payload.ActionType == evidence.Submission })
	last := slices.IndexFunc(records, func(r *evidence.Record) bool { return r.Payload.ActionType == evidence.FinalJudgment })
	if last < 0 {
		return
	}
	judgment := records[last]
	var on submitted
	if first >= 0 {
		on = readSubmission(records[first])
	}
	counts := judgment.Log.Counts()
	if f.ordered(judgment) && counts.SubjectSeq > 0 {
		if !f.isSubject(judgment) {
			return
		}
	} else if on.name != f.g.identity.Name {
		return
	} else {
		f.count(judgment, OfSubject, 0)
	}
	made := &TrialFact{Place: f.place(judgment), Standing: f.standing(judgment), Chain: judgment.Payload.ChainID, Transcript: on.transcript,
		Exhibits: filled(on.exhibits), Own: []evidence.Digest{}, Raters: []Rater{}, Decisions: []DecisionFact{}, Panel: Panel{Seats: []string{}}}
	if first >= 0 {
		made.CaseSeq, made.Own = records[first].Log.Counts().CaseSeq, filled(on.by[f.g.identity.Name])
		f.g.named[made.Digest] = f.g.named[made.Digest] || !on.withheld
	}
	f.whole(made, records, bundle)
	if made.Proved {
		f.raters(made, records)
		f.panel(made, records)
	}
	f.g.keepTrial(made)
}

// ofTrial are the guarantees about a trial without which its verdict does not count.
var ofTrial = []verify.Guarantee{verify.Content, verify.Authentication, verify.Time, verify.Order, verify.Completeness, verify.Simultaneity, verify.Verdict}

// whole asks whether the trial is proved, and reads the verdict and the decisions. One bad review after the closing must not take back a bad verdict:
// a trial that is not proved is verified again without what came later.
func (f *taken) whole(made *TrialFact, records []*evidence.Record, bundle func() *evidence.Bundle) {
	report := f.report
	if f.unproved(report) != "" {
		if b := bundle(); b != nil {
			acts := slices.DeleteFunc(slices.Clone(b.Records), func(r *evidence.Record) bool { return !r.Payload.ActionType.InTrial() })
			if len(acts) < len(b.Records) && len(acts) > 1 {
				report = verify.Bundle(&evidence.Bundle{Records: acts, Checkpoint: b.Checkpoint, Anchors: b.Anchors}, f.g.options)
			}
		}
	}
	if rule := f.unproved(report); rule != "" || report.TrialOutcome == nil {
		made.Proved, made.Rule = false, cmp.Or(rule, "verdict/")
		return
	}
	made.Proved, made.Rule = true, ""
	verdict := report.TrialOutcome.Verdict
	made.Position, made.Degraded, made.Inconclusive, made.Review = verdict.Position, verdict.Degraded, verdict.Inconclusive, len(verdict.Review) > 0
	f.decisions(made, records)
}

func (f *taken) unproved(report *verify.Report) string {
	for _, g := range ofTrial {
		if answer := report.Of(g); answer.Status != verify.Proved {
			return string(g) + "/" + answer.Rule
		}
	}
	return ""
}

// decisions reads what people decided on the verdict.
func (f *taken) decisions(made *TrialFact, records []*evidence.Record) {
	asked := append(slices.Clone(mustBeProved), verify.HumanReview)
	k := new(jury.Reckoning)
	for _, r := range records {
		if r.Payload.ActionType != evidence.HumanReview {
			if k.Add(r) != nil {
				return // the report would have said so
			}
			continue
		}
		rule := f.against(r.Payload.RecordID, asked)
		decide := k.Decide
		if rule != "" {
			decide = k.Doubt
		}
		d := decide(r)
		if d == nil {
			f.review(r, rule == "") // on another act of the trial
			continue
		}
		one := DecisionFact{Place: f.place(r), Standing: f.standing(r), Status: d.Status, Position: d.Position, Reviewer: f.rater(r)}
		one.Proved, one.Rule = rule == "", rule
		made.Decisions = append(made.Decisions, one)
	}
}

// raters are the submitter, the jurors and the judge.
func (f *taken) raters(made *TrialFact, records []*evidence.Record) {
	for _, r := range records {
		switch r.Payload.Role() {
		case evidence.RoleSubmitter, evidence.RoleJuror, evidence.RoleJudge:
			if one := f.rater(r); !slices.Contains(made.Raters, one) {
				made.Raters = append(made.Raters, one)
			}
		}
	}
	slices.SortFunc(made.Raters, func(a, b Rater) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Name, b.Name), cmp.Compare(a.By, b.By), cmp.Compare(a.CA, b.CA))
	})
}

// panel reads who sat from the settings of the first opening.
func (f *taken) panel(made *TrialFact, records []*evidence.Record) {
	i := slices.IndexFunc(records, func(r *evidence.Record) bool { return r.Payload.ActionType == evidence.PhaseOpening })
	if i < 0 {
		return
	}
	var opening struct {
		Settings jsontext.Value `json:"settings"`
	}
	var settings jury.Settings
	if json.Unmarshal(records[i].Payload.Response, &opening) != nil || json.Unmarshal(opening.Settings, &settings) != nil {
		return // the report would have said so
	}
	made.Panel = PanelOf(&settings, opening.Settings)
}

// PanelOf names a panel. Its digest is that of the settings without what is another in every release of the program, or
// decides nothing: the seats' templates, the ceiling on cost, and how long evidence is shortened.
func PanelOf(s *jury.Settings, form jsontext.Value) Panel {
	made := Panel{Method: s.Method, Rules: true, Seats: []string{}}
	for _, seat := range s.Seats {
		made.Seats = append(made.Seats, seat.Provider+"/"+seat.Model)
		made.Rules = made.Rules && seat.Provider == jury.Offline
	}
	if s.Judge != nil {
		made.Judge = s.Judge.Provider + "/" + s.Judge.Model
	}
	var members map[string]any
	if json.Unmarshal(form, &members) != nil {
		return made
	}
	delete(members, "costCeiling")
	delete(members, "shortening")
	seats, _ := members["seats"].([]any)
	for _, seat := range append(slices.Clone(seats), members["judge"]) {
		if one, is := seat.(map[string]any); is {
			delete(one, "template")
		}
	}
	if doc, err := canonical(members); err == nil {
		made.Digest = evidence.DigestOf(doc)
	}
	return made
}

// keepTrial joins what several files say of one trial: later ones have more decisions.
func (g *Gatherer) keepTrial(made *TrialFact) {
	known, fresh := kept(g.trials, made.Digest, made)
	if fresh {
		return
	}
	if !known.Proved && made.Proved {
		known, made = made, known
		g.trials[known.Digest] = known
	}
	merge(&known.Place, &known.Standing, made.Place, made.Standing)
	if len(known.Exhibits) == 0 {
		known.Exhibits, known.Transcript = made.Exhibits, made.Transcript
	}
	if len(known.Own) == 0 { // this copy's submission has lost its text
		known.Own = made.Own
	}
	known.CaseSeq = max(known.CaseSeq, made.CaseSeq)
	for _, d := range made.Decisions {
		i := slices.IndexFunc(known.Decisions, func(k DecisionFact) bool { return k.Digest == d.Digest })
		if i < 0 {
			known.Decisions = append(known.Decisions, d)
			continue
		}
		k := &known.Decisions[i]
		if !k.Proved && d.Proved {
			k.Position, k.Reviewer = d.Position, d.Reviewer
		}
		merge(&k.Place, &k.Standing, d.Place, d.Standing)
	}
	slices.SortFunc(known.Decisions, func(a, b DecisionFact) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), compareDigests(a.Digest, b.Digest))
	})
}

// submitted is what a submission says of whom it is about.
type submitted struct {
	name       string // of the agent on trial; "": it is sealed apart
	withheld   bool
	transcript bool
	exhibits   []evidence.Digest
	by         map[string][]evidence.Digest // exhibits, by the agent that each names
}

// readSubmission reads whom a trial is about, and by which records. A submission names them in saw, too, for when its text was erased. Both must be
// the same, and each the record that it says: otherwise the jury saw something else, and there is no exhibit.
func readSubmission(r *evidence.Record) (s submitted) {
	response, withheld := r.Said("/response", r.Payload.Response)
	if withheld {
		return submitted{withheld: true, exhibits: r.Payload.Saw, transcript: len(r.Payload.Saw) == 0}
	}
	var material struct {
		AgentCard jsontext.Value `json:"agentCard"`
		Records   []struct {
			Digest  evidence.Digest `json:"digest"`
			Payload jsontext.Value  `json:"payload"`
		} `json:"records"`
	}
	if json.Unmarshal(response, &material) != nil || len(material.Records) == 0 {
		return submitted{name: verify.AgentOnTrial(response), transcript: true}
	}
	same := true
	s.by = map[string][]evidence.Digest{}
	for _, one := range material.Records {
		form, err := evidence.Canonical(one.Payload)
		same = same && err == nil && evidence.DigestOf(form) == one.Digest
		s.exhibits = append(s.exhibits, one.Digest)
		name := verify.AgentOf(one.Payload)
		s.by[name] = append(s.by[name], one.Digest)
	}
	if saw := r.Payload.Saw; !same || len(saw) > 0 && !slices.Equal(saw, s.exhibits) {
		s.exhibits, s.by = nil, nil
	}
	s.name = verify.AgentOnTrial(response)
	return s
}
