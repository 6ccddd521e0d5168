package find_test

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/examples"
	"jurat/internal/court/subject"
	"jurat/internal/court/trial"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/internal/web/find"
	"jurat/jury"
)

// What the log of TestEveryFilterAgainstScan is made of.
var (
	cardNames  = []string{"Invoice Bot", "invoice helper", "返金エージェント", "Агент доставки", "İstanbul"}
	submitters = []string{"submitter", "Night Shift", "ночная смена"}
	seatNames  = []string{"juror-a", "juror-b", "Strict", "строгий", "juror-a2"}
	models     = []string{"scripted", "gpt-x", "模型-1"}
	agents     = []string{"bot", "bot-2", "бот"}
	sentences  = []string{"the parcel is late", "refund approved", "返金を承認しました", "Возврат одобрен", "nothing was found", "may i send"}
	methods    = []jury.Method{jury.MajorityVote, jury.Median}
)

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// town is a log with trials of every kind, and records of agents between them.
type town struct {
	*jurattest.House
	r *rand.Rand
}

// try submits a trial, holds most of them, and lets people decide on some.
func (h *town) try(t *testing.T) {
	t.Helper()
	card, conversation, err := examples.Read(examples.Names()[0])
	must.Do(t, err)
	on, err := subject.New(card, conversation)
	if err == nil {
		on, err = subject.New(bytes.ReplaceAll(card, []byte(on.Card.Name), []byte(pick(h.r, cardNames))), conversation)
	}
	must.Do(t, err)
	c := trial.Config{Ledger: h.Ledger, Keys: h.Keys, Settings: jurattest.Settings(pick(h.r, methods)), Submitter: pick(h.r, submitters),
		Now: func() time.Time { return jurattest.Start.Add(-time.Duration(h.r.IntN(5*24)) * time.Hour) }}
	c.Settings.Collaborative = false
	names := h.r.Perm(len(seatNames))
	for i := range c.Settings.Seats {
		c.Settings.Seats[i].JurorID, c.Settings.Seats[i].RoleName, c.Settings.Seats[i].Model = fmt.Sprint(seatNames[names[i]]), "Role of "+pick(h.r, seatNames), pick(h.r, models)
		o := jurattest.Opine(pick(h.r, []jury.Position{jury.SafePass, jury.NeedsReview, jury.UnsafeFail}), 5*h.r.IntN(20))
		o.Rationale = pick(h.r, sentences)
		c.Jurors = append(c.Jurors, &jurattest.Juror{Opinion: o})
	}
	if h.r.IntN(5) == 0 {
		must.Get(trial.Submit(t.Context(), c, on))(t)
		return
	}
	held := must.Get(trial.Run(t.Context(), c, on))(t)
	if h.r.IntN(3) > 0 {
		return
	}
	i := slices.IndexFunc(held.Records, func(r *evidence.Record) bool { return r.Payload.ActionType == evidence.FinalJudgment })
	judged := held.Records[i]
	h.Seal(t, evidence.Payload{ActionType: evidence.HumanReview, Timestamp: evidence.FormatTime(jurattest.Start), ReviewerID: "anna", ChainID: held.ID, OriginalResponseID: judged.Payload.RecordID,
		PreviousRecord: judged.Digest, ApprovalStatus: evidence.ApprovedWithModifications, ModifiedResponse: jury.ModifiedVerdict(pick(h.r, jury.Decidable())),
		Changes: jsontext.Value(`"I decide otherwise"`)})
}

func (h *town) speak(t *testing.T) {
	t.Helper()
	said := must.Get(jsontext.AppendQuote(nil, pick(h.r, sentences)+" "+pick(h.r, sentences)))(t)
	p := evidence.Payload{ActionType: pick(h.r, []evidence.ActionType{evidence.Recommendation, evidence.ModelOutput}), Timestamp: evidence.FormatTime(jurattest.Start.Add(-time.Duration(h.r.IntN(5*24)) * time.Hour)),
		AgentID: pick(h.r, agents), RequestID: "r", Model: "m", ModelVersion: "1", Prompt: jsontext.Value(`"May I send it?"`), Response: said, Parameters: jsontext.Value(`{}`)}
	if h.r.IntN(2) == 0 {
		p.ChainID = pick(h.r, []string{"chain-1", "chain-2"})
	}
	h.Seal(t, p)
}

// A scan has every record of a log, in its order, and answers by looking at each.
type scan struct {
	records  []*evidence.Record
	trials   []*scanned // in the order of submission
	passages map[*evidence.Record][]passage
}

// A passage is one of a record as searches compare it. To read them takes longer than everything else here.
type passage struct {
	text string
	said bool
}

type scanned struct {
	trial.Summary
	records []*evidence.Record
}

func scanOf(t *testing.T, h *jurattest.House) *scan {
	t.Helper()
	s, byChain := &scan{passages: map[*evidence.Record][]passage{}}, map[string]*scanned{}
	for r, err := range h.Ledger.Records(t.Context(), 0) {
		must.Do(t, err)
		s.records = append(s.records, r.Record)
		for _, p := range find.Passages(&r.Payload) {
			s.passages[r.Record] = append(s.passages[r.Record], passage{find.Fold(p.Text), p.Said()})
		}
		id := r.Payload.ChainID
		if !strings.HasPrefix(id, evidence.TrialPrefix) {
			continue
		}
		if byChain[id] == nil {
			byChain[id] = &scanned{}
			s.trials = append(s.trials, byChain[id])
		}
		byChain[id].records = append(byChain[id].records, r.Record)
	}
	for _, one := range s.trials {
		v := must.Get(trial.ViewOf(nil, one.records))(t)
		one.Summary = v.Summary
	}
	return s
}

func (s *scan) has(r *evidence.Record, folded string, said bool) bool {
	return folded == "" || slices.ContainsFunc(s.passages[r], func(p passage) bool { return (!said || p.said) && strings.Contains(p.text, folded) })
}

func (s *scan) find(q *find.Records, in find.Scope) (ids []string) {
	for _, r := range s.records {
		p := &r.Payload
		allowed := in.All || in.Trials[p.ChainID] || in.Agent != "" && p.Role() == evidence.RoleAgent && p.Actor() == in.Agent
		if allowed && s.has(r, q.Text, q.Said) && (q.Actor == "" || p.Actor() == q.Actor || p.Observed != nil && p.Observed.Agent == q.Actor) && (q.Action == "" || p.ActionType == q.Action) &&
			(q.Chain == "" || p.ChainID == q.Chain) && (q.Record == "" || p.RecordID == q.Record) &&
			(q.From.IsZero() || !p.Time().Before(q.From)) && (q.To.IsZero() || p.Time().Before(q.To)) {
			ids = append(ids, p.RecordID)
		}
	}
	if !q.Oldest {
		slices.Reverse(ids)
	}
	return ids
}

// seated reports whether a juror or role, or a model, has a part of its name.
func (s *scanned) seated(t *testing.T, juror, model string) bool {
	var jurors, asked []string
	for _, r := range s.records {
		p := &r.Payload
		if role := p.Role(); role == evidence.RoleJuror || role == evidence.RoleJudge {
			jurors, asked = append(jurors, p.Actor()), append(asked, p.Model, p.ModelVersion)
		}
		if p.ActionType != evidence.PhaseOpening {
			continue
		}
		body := must.Get(jury.DecodeBody(p.ActionType, p.Response))(t)
		for _, seat := range body.(*jury.Opening).Settings.Seats {
			jurors, asked = append(jurors, seat.JurorID, seat.RoleName), append(asked, seat.Model)
		}
	}
	in := func(names []string, part string) bool {
		return part == "" || slices.ContainsFunc(names, func(name string) bool { return strings.Contains(find.Fold(name), part) })
	}
	return in(jurors, juror) && in(asked, model)
}

func (s *scan) trialsOf(t *testing.T, q *find.Trials) (list []*scanned, counts api.TrialCounts) {
	counts = api.TrialCounts{Verdicts: map[string]int{}, Outcomes: map[string]int{}}
	for _, one := range slices.Backward(s.trials) {
		verdict, outcome := find.None, find.None
		if one.Outcome != nil {
			verdict, outcome = string(one.Outcome.Verdict.Position), string(one.Outcome.Position)
		}
		if !(strings.Contains(find.Fold(one.Agent), q.Agent) && strings.Contains(find.Fold(one.Submitter), q.Submitter) && (q.Exact == "" || one.Agent == q.Exact) &&
			(q.Verdict == "" || q.Verdict == verdict) && (q.Outcome == "" || q.Outcome == outcome) && (q.Needs == "" || (q.Needs == "true") == one.NeedsPerson()) &&
			(q.From.IsZero() || !one.Submitted.Before(q.From)) && (q.To.IsZero() || one.Submitted.Before(q.To)) && one.seated(t, q.Juror, q.Model) &&
			slices.ContainsFunc(one.records, func(r *evidence.Record) bool { return s.has(r, q.Text, false) }) &&
			(q.Record == "" || q.Record == one.ID || slices.ContainsFunc(one.records, func(r *evidence.Record) bool { return r.Payload.RecordID == q.Record }))) {
			continue
		}
		list = append(list, one)
		counts.Total, counts.Verdicts[verdict], counts.Outcomes[outcome] = counts.Total+1, counts.Verdicts[verdict]+1, counts.Outcomes[outcome]+1
		if one.NeedsPerson() {
			counts.NeedsPerson++
		}
	}
	score := func(s *scanned, none int) int {
		if s.Outcome == nil {
			return none
		}
		return s.Outcome.Verdict.Score
	}
	switch q.Sort {
	case find.Oldest:
		slices.Reverse(list)
	case find.Latest:
		slices.SortStableFunc(list, func(a, b *scanned) int { return b.Last.Compare(a.Last) })
	case find.Highest:
		slices.SortStableFunc(list, func(a, b *scanned) int { return cmp.Compare(score(b, -1), score(a, -1)) })
	case find.Lowest:
		slices.SortStableFunc(list, func(a, b *scanned) int { return cmp.Compare(score(a, 1000), score(b, 1000)) })
	case find.ByAgent:
		slices.SortStableFunc(list, func(a, b *scanned) int { return strings.Compare(find.Fold(a.Agent), find.Fold(b.Agent)) })
	}
	return list, counts
}

// asking makes random searches.
type asking struct {
	r    *rand.Rand
	scan *scan
}

// sometimes sets a parameter in one of n searches.
func (a *asking) sometimes(n int, values map[string]string, name, value string) {
	if a.r.IntN(n) == 0 {
		values[name] = value
	}
}

func (a *asking) date(days int) string {
	return jurattest.Start.Add(time.Duration((days-5)*24) * time.Hour).Format(time.DateOnly)
}

func (a *asking) id() string { return pick(a.r, a.scan.records).Payload.RecordID }

func (a *asking) records() map[string]string {
	v := map[string]string{"limit": fmt.Sprint(1 + a.r.IntN(40)), "sort": pick(a.r, []string{"newest", "oldest", ""})}
	a.sometimes(2, v, "text", cutOut(a.r, pick(a.r, append(sentences, "zebra crossing"))))
	if v["text"] != "" {
		a.sometimes(2, v, "said", "true")
	}
	some := pick(a.r, a.scan.records).Payload
	a.sometimes(3, v, "actor", pick(a.r, append([]string{some.Actor()}, watched...)))
	a.sometimes(4, v, "action", string(some.ActionType))
	a.sometimes(4, v, "chain", some.ChainID)
	a.sometimes(6, v, "record", pick(a.r, []string{some.RecordID, a.id(), "nothing"}))
	a.sometimes(4, v, "from", a.date(a.r.IntN(3)))
	a.sometimes(4, v, "to", a.date(3+a.r.IntN(3)))
	return v
}

func (a *asking) trials() map[string]string {
	v := map[string]string{"limit": fmt.Sprint(1 + a.r.IntN(9)), "sort": string(pick(a.r, find.Sorts()))}
	part := func(names []string) string {
		name := []rune(pick(a.r, names))
		return strings.ToUpper(string(name[a.r.IntN(len(name)):]))
	}
	a.sometimes(4, v, "agent", part(cardNames))
	a.sometimes(4, v, "submitter", part(submitters))
	a.sometimes(4, v, "juror", part(seatNames))
	a.sometimes(4, v, "model", part(models))
	a.sometimes(4, v, "verdict", pick(a.r, find.Positions()))
	a.sometimes(4, v, "outcome", pick(a.r, find.Positions()))
	a.sometimes(5, v, "needs_person", pick(a.r, []string{"true", "false"}))
	a.sometimes(5, v, "from", a.date(a.r.IntN(3)))
	a.sometimes(5, v, "to", a.date(3+a.r.IntN(3)))
	a.sometimes(4, v, "text", cutOut(a.r, pick(a.r, append(sentences, "zebra crossing", "I decide otherwise"))))
	a.sometimes(8, v, "record", pick(a.r, []string{a.id(), pick(a.r, a.scan.trials).ID, "nothing"}))
	return v
}

func get(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

// atLength is how many things a test tries in its long form, and in its short one.
func atLength(long, short int) int {
	if os.Getenv("JURAT_TEST_LONG") != "" {
		return long
	}
	return short
}

// TestEveryFilterAgainstScan compares searches of every kind, with several filters at once, page by page, with looking at every record:
// of an index that followed a growing log, of its file when it is opened again, and of one in memory.
func TestEveryFilterAgainstScan(t *testing.T) {
	h := &town{jurattest.New(t), rand.New(rand.NewPCG(5, 23))}
	path := t.TempDir() + "/find.db"
	x := openIndex(t, h.House, path)
	for i := range 150 {
		if i%5 == 0 {
			h.try(t)
		}
		h.speak(t)
		h.watch(t)
		if i%40 == 20 {
			h.judge(t, h.seen(t))
		}
		if i%60 == 59 {
			follow(t, x)
		}
	}
	follow(t, x)
	trials := trial.NewIndex(h.Ledger, nil)
	must.Do(t, trials.Follow(t.Context()))
	a := &asking{h.r, scanOf(t, h.House)}
	searches := atLength(200, 20)
	compare := func(when string, x *find.Index) {
		found := 0
		for range searches {
			found += a.compareRecords(t, when, x)
			found += a.compareTrials(t, when, x, trials)
			found += a.compareRecordings(t, when, x)
		}
		must.Hold(t, found >= 5*searches, "%s: only %d things were found", when, found)
	}
	compare("while it is open", x)
	compare("opened again", openIndex(t, h.House, path))
	compare("in memory", followed(t, h.House))
}

func (a *asking) scope() find.Scope {
	if a.r.IntN(3) > 0 {
		return find.Scope{All: true}
	}
	in := find.Scope{Trials: map[string]bool{}, Agent: pick(a.r, append(agents, ""))}
	for _, one := range a.scan.trials {
		if a.r.IntN(2) == 0 {
			in.Trials[one.ID] = true
		}
	}
	return in
}

func (a *asking) compareRecords(t *testing.T, when string, x *find.Index) int {
	t.Helper()
	values, in := a.records(), a.scope()
	if _, err := find.ReadRecords(get(values)); err != nil {
		return 0 // too short, which TestHostileQueries is about
	}
	var got []string
	for pages := 0; ; pages++ {
		q := must.Get(find.ReadRecords(get(values)))(t)
		found := must.Get(x.Records(t.Context(), q, in, nil))(t)
		for _, hit := range found.Hits {
			got = append(got, hit.Record.Payload.RecordID)
		}
		if values["after"] = found.Next; found.Next == "" || pages > 1000 {
			break
		}
	}
	q := must.Get(find.ReadRecords(get(values)))(t)
	want := a.scan.find(q, in)
	must.Need(t, slices.Equal(got, want), "%s: %v as %+v: found %d, but a scan finds %d:\n%v\n%v", when, values, in, len(got), len(want), got, want)
	return len(got)
}

func (a *asking) compareTrials(t *testing.T, when string, x *find.Index, trials *trial.Index) int {
	t.Helper()
	values := a.trials()
	q, err := find.ReadTrials(get(values))
	if err != nil {
		return 0
	}
	if a.r.IntN(6) == 0 {
		q.Exact = pick(a.r, cardNames)
	}
	want, counts := a.scan.trialsOf(t, q)
	var got []string
	for pages := 0; ; pages++ {
		listed := must.Get(q.Trials(t.Context(), trials, x, nil))(t)
		if c := listed.Counts; c.Total != counts.Total || c.NeedsPerson != counts.NeedsPerson || c.AtMost || !maps.Equal(c.Verdicts, counts.Verdicts) || !maps.Equal(c.Outcomes, counts.Outcomes) {
			t.Fatalf("%s: %v: counts %+v, but a scan counts %+v", when, values, c, counts)
		}
		for _, s := range listed.Trials {
			got = append(got, s.ID)
		}
		if q.After = listed.Next; listed.Next == "" || pages > 1000 {
			break
		}
	}
	var ids []string
	for _, one := range want {
		ids = append(ids, one.ID)
	}
	must.Need(t, slices.Equal(got, ids), "%s: %v: found %v, but a scan finds %v", when, values, got, ids)
	return len(got)
}
