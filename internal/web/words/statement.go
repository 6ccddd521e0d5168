package words

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/property"
	"jurat/jury"
	"jurat/verify"
	"jurat/verify/trust"
)

// A Site is the public address of a server that shows records on pages, such as https://jurat.example. A statement names the record's
// page there. The empty Site has no pages.
type Site string

// Statement returns the paragraphs of the statement on one record, or on a trial's records. report is the verification report on these
// records. The statement says the same in every language, and names the pages of the site.
func (s Site) Statement(records []*evidence.Record, report *verify.Report, lang Lang) []string {
	w := &writer{in(lang), report, report.Answers(), s}
	if report.Kind == verify.Trial {
		return w.trial(records)
	}
	var paragraphs []string
	for _, r := range records {
		paragraphs = append(paragraphs, w.record(r)...)
	}
	return w.end(paragraphs)
}

// OnRecord returns the paragraphs of the statement on one record of a larger file. report is on the whole file. If the file is a trial,
// Statement would describe the whole trial instead.
func (s Site) OnRecord(r *evidence.Record, report *verify.Report, lang Lang) []string {
	w := &writer{in(lang), report, report.Answers(), s}
	return w.end(w.record(r))
}

// end adds what the proof rests on, and what it does not show.
func (w *writer) end(paragraphs []string) []string {
	return present(append(paragraphs, RestsOn(w.lang, w.report), w.disclaim(w.report))...)
}

// present returns the texts that are not empty.
func present(texts ...string) []string {
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}

// A writer writes one statement.
type writer struct {
	tongue
	report  *verify.Report
	answers *verify.Answers // the report's answers on single records
	site    Site
}

func (w *writer) record(r *evidence.Record) []string {
	check := w.Say("statement.check", "record", r.Payload.RecordID, "digest", r.Digest)
	return present(w.join(w.who(r), w.when(r), w.sealing(r), w.keys(r)), w.reviewOf(r), w.under(r), w.proofs(r), w.join(check, w.page(r)))
}

// page names the record's page, where the server that keeps the record has one.
func (w *writer) page(r *evidence.Record) string {
	if w.site == "" {
		return ""
	}
	return w.Say("statement.page", "link", w.site.Page(r.Payload.RecordID))
}

func (s Site) Page(record string) string {
	return strings.TrimRight(string(s), "/") + "/records/" + url.PathEscape(record)
}

// who names the actor. It states this as a fact only if the signature proves it.
func (w *writer) who(r *evidence.Record) string {
	key := "statement.not_proved"
	switch proved, model := w.holds(r, verify.Content, verify.Authentication), r.Payload.Model != ""; {
	case proved && model:
		key = "statement.recorded_with_model"
	case proved:
		key = "statement.recorded"
	case w.refutes(r, verify.Content, verify.Authentication):
		key = "statement.refuted"
	case model:
		key = "statement.not_proved_model"
	}
	p := &r.Payload
	return w.Say(key, "action", w.named("action", p.ActionType), "role", w.named("role", p.Role()), "actor", strconv.Quote(p.Actor()),
		"model", word(p.Model), "version", word(p.ModelVersion), "because", w.why(r, verify.Content, verify.Authentication))
}

// when returns the time that the actor claims, and separately the time that the authority proves.
func (w *writer) when(r *evidence.Record) string {
	return w.join(w.Say("statement.claimed", "time", r.Payload.Timestamp), w.stamped(r))
}

// stamped returns the proved time, if there is one, and whose clock it comes from.
func (w *writer) stamped(r *evidence.Record) string {
	if w.refutes(r, verify.Time) {
		return w.Say("statement.time_refuted", "because", w.why(r, verify.Time))
	}
	t, ok := w.answers.TimeOf(r.Payload.RecordID)
	if !ok || !w.holds(r, verify.Content) {
		return w.Say("statement.time_unproved", "because", w.why(r, verify.Time, verify.Content))
	}
	if t.Independent != nil { // an independent clock proves more, although its time is later
		return w.join(w.byAuthority(*t.Independent), w.byAuthority(t.ProvedTime))
	}
	return w.byAuthority(t.ProvedTime)
}

func (w *writer) byAuthority(t trust.ProvedTime) string {
	return w.Say("statement.clock."+string(t.Clock), "time", t.Time.UTC().Format(time.RFC3339Nano), "authority", t.Authority)
}

// keys says who else could have signed, if it is known who did.
func (w *writer) keys(r *evidence.Record) string {
	if !w.holds(r, verify.Content, verify.Authentication) {
		return ""
	}
	said := []string{w.keysBy(w.answers.For(verify.NonRepudiation, r.Payload.RecordID), "statement.key_of_operator")}
	for _, by := range w.report.Identities {
		if by.Revoked != nil && slices.ContainsFunc(r.Payload.Signers, func(s evidence.SignerInfo) bool { return s.KeyID == by.KeyID }) {
			said = append(said, inert(Revoked(w.lang, by.Revoked)))
		}
	}
	return w.join(said...)
}

func (w *writer) keysBy(f verify.Finding, ofOperator string) string {
	switch {
	case f.Status == verify.Proved:
		return w.Say("statement.key_of_actor")
	case f.Rule == "custody":
		return w.Say(ofOperator)
	}
	return w.Say("statement.key_unproved", "reason", w.reason(f))
}

func (w *writer) reviewOf(r *evidence.Record) string {
	p := &r.Payload
	if p.ActionType != evidence.HumanReview || !w.holds(r, verify.Content, verify.Authentication) {
		return ""
	}
	return w.join(w.Say("statement.reviewed", "status", w.named("approval", p.ApprovalStatus), "original", word(p.OriginalResponseID)), w.reasonOf(r))
}

func (w *writer) reasonOf(r *evidence.Record) string {
	why, withheld := r.Said("/changes", r.Payload.Changes)
	if withheld || len(why) == 0 {
		return ""
	}
	return w.Say("statement.decided_why", "why", quoted(why))
}

func (w *writer) sealing(r *evidence.Record) string {
	switch {
	case w.refutes(r, verify.Content):
		return w.Say("statement.content_refuted")
	case !w.holds(r, verify.Content):
		return w.Say("statement.content_not_proved")
	}
	var algorithms []string
	for _, s := range r.Payload.Signers {
		algorithms = append(algorithms, string(s.Algorithm))
	}
	place := ""
	if w.holds(r, verify.Order) && r.Log != nil {
		place = w.Say("statement.place", "place", r.Log.Index)
	}
	return w.join(w.Say("statement.sealed", "algorithms", strings.Join(algorithms, ", ")), place)
}

// under names the parameters and the context of an output, as the record states them, or as the file discloses what the record commits to.
func (w *writer) under(r *evidence.Record) string {
	said, withheld := r.Said("/context", r.Payload.Context)
	parameters, context := parameters(r.Payload.Parameters), ""
	if parameters != "" {
		parameters = w.Say("statement.configuration", "parameters", parameters)
	}
	switch {
	case withheld:
		context = w.Say("statement.context_apart")
	case len(said) > 0:
		context = w.Say("statement.context", "context", quoted(said))
	}
	return w.join(parameters, context)
}

// parameters formats {"temperature":0.2} as temperature=0.2, sorted by name.
func parameters(value jsontext.Value) string {
	members := map[string]jsontext.Value{}
	if len(value) == 0 || json.Unmarshal(value, &members) != nil {
		return ""
	}
	var parts []string
	for name, v := range members {
		parts = append(parts, fmt.Sprintf("%s=%s", word(name), inert(shortened(string(v)))))
	}
	slices.Sort(parts)
	return shortened(strings.Join(parts, ", "))
}

func quoted(value jsontext.Value) string {
	var text string
	if json.Unmarshal(value, &text) != nil {
		text = string(value)
	}
	return strconv.Quote(shortened(text))
}

// shortened limits a text, so that people read a statement to its end.
func shortened(text string) string {
	const most = 600 // characters
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// word returns a single word as it is, and quotes any other text.
func word(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@+"
	if s != "" && !strings.ContainsFunc(s, func(c rune) bool { return !strings.ContainsRune(plain, c) }) {
		return s
	}
	return strconv.Quote(s)
}

// inert keeps a text on its line. It replaces characters that would move a cursor or change the writing direction. It separates joined
// errors, each on a line of its own, by semicolons.
func inert(s string) string {
	s = strings.ReplaceAll(s, "\n", "; ")
	return strings.Map(func(c rune) rune {
		if c == ' ' || unicode.IsPrint(c) {
			return c
		}
		return unicode.ReplacementChar
	}, s)
}

// holds reports whether all these guarantees are proved for the record.
func (w *writer) holds(r *evidence.Record, guarantees ...verify.Guarantee) bool {
	return w.proved(r.Payload.RecordID, guarantees...)
}

func (w *writer) proved(record string, guarantees ...verify.Guarantee) bool {
	return !slices.ContainsFunc(guarantees, func(g verify.Guarantee) bool { return w.answers.For(g, record).Status != verify.Proved })
}

// refutes reports whether any of these guarantees is refuted for the record.
func (w *writer) refutes(r *evidence.Record, guarantees ...verify.Guarantee) bool {
	return slices.ContainsFunc(guarantees, func(g verify.Guarantee) bool { return w.answers.For(g, r.Payload.RecordID).Status == verify.Refuted })
}

// why explains the first of these guarantees that is not proved for the record: what is missing or false.
func (w *writer) why(r *evidence.Record, guarantees ...verify.Guarantee) string {
	for _, g := range guarantees {
		if f := w.answers.For(g, r.Payload.RecordID); f.Status != verify.Proved {
			return w.because(f)
		}
	}
	return w.Say("statement.no_reason")
}

// A tongue is what statements are written from in one language.
type tongue struct {
	Texts
	lang Lang
}

func in(lang Lang) tongue { return tongue{Of(lang), lang} }

// join makes a paragraph of the sentences that are not empty.
func (t tongue) join(sentences ...string) string {
	return strings.Join(present(sentences...), t.Say("statement.between"))
}

// named names a value. One without a name in the language is shown as it was sealed.
func (t tongue) named(kind string, value any) string {
	text := fmt.Sprint(value)
	return cmp.Or(t.Say(kind+"."+text), word(text))
}

func (t tongue) position(p jury.Position) string { return t.named("sealed_position", p) }

func (t tongue) reason(f verify.Finding) string { return inert(Reason(t.lang, f)) }

// because says what a finding about one record lacks or refutes, in a sentence that can do without the reason, which is in English.
func (t tongue) because(f verify.Finding) string {
	return cmp.Or(t.answer("because", f), t.reason(f))
}

// answer says what a finding comes to, by its guarantee and its status.
func (t tongue) answer(about string, f verify.Finding) string {
	return t.Say("statement."+about+"."+string(f.Guarantee)+"."+string(f.Status), "reason", t.reason(f))
}

// disclaim says what the report does not prove. An item without words in the language is shown in the report's words.
func (t tongue) disclaim(report *verify.Report) string {
	var items []string
	for _, item := range report.NotShown {
		items = append(items, t.Name("not_shown", item))
	}
	return t.Say("statement.disclaimer", "items", strings.Join(items, t.Say("statement.nor")))
}

// trial tells what the trial came to, what the jury judged, what people decided, and whether the votes bear the judgment out.
func (w *writer) trial(records []*evidence.Record) []string {
	acts := slices.DeleteFunc(slices.Clone(records), func(r *evidence.Record) bool { return !r.Payload.ActionType.InTrial() })
	if len(acts) == 0 {
		return []string{w.Say("statement.no_acts"), w.disclaim(w.report)}
	}
	first := acts[0]
	head := w.Say("statement.acts", "count", len(records), "acts", len(acts), "people", len(records)-len(acts), "trial", word(first.Payload.ChainID), "digest", first.Payload.Case)
	paragraphs := slices.Concat([]string{w.outcomeOf(records), w.join(head, w.when(first), w.signed())}, w.judgments(acts), w.beside(acts),
		[]string{w.seats(acts)}, w.people(records))
	for _, g := range []verify.Guarantee{verify.Completeness, verify.Simultaneity} {
		paragraphs = append(paragraphs, w.answer("procedure", w.report.Of(g)))
	}
	if i := slices.IndexFunc(acts, func(r *evidence.Record) bool { return r.Payload.ActionType == evidence.FinalJudgment }); i >= 0 {
		check := w.Say("statement.check_trial", "submission", word(first.Payload.RecordID), "judgment", word(acts[i].Payload.RecordID))
		paragraphs = append(paragraphs, w.join(check, w.page(acts[i])))
	}
	return w.end(paragraphs)
}

// outcomeOf returns the trial's outcome, if it is proved. If it is only claimed, and a person decided on it, it says that the outcome is
// unknown.
func (w *writer) outcomeOf(records []*evidence.Record) string {
	if o := w.report.TrialOutcome; o != nil {
		return w.came(o)
	}
	claimed, err := jury.OutcomeOf(records)
	if err != nil || claimed == nil || claimed.Decisions == 0 {
		return "" // the judgment itself is reported below
	}
	return w.Say("statement.unknown", "count", claimed.Decisions)
}

// Outcome returns a trial's outcome in a few sentences: while it is open, with the reasons why a person must see the verdict.
func Outcome(o *jury.TrialOutcome, lang Lang) string {
	t := in(lang)
	if !o.Open {
		return t.came(o)
	}
	return t.join(t.came(o), t.reasons(o.Verdict.Review))
}

func (t tongue) came(o *jury.TrialOutcome) string {
	key := "statement.outcome." + string(o.By)
	if o.Open {
		key = "statement.open." + string(o.By)
	}
	pairs := []any{"position", t.position(o.Position), "jury", t.position(o.Verdict.Position), "score", o.Verdict.Score, "method", t.named("sealed_method", o.Verdict.Method)}
	if d := o.Decision; d != nil {
		if d.Doubted {
			key = "statement.doubted"
		}
		pairs = append(pairs, "actor", strconv.Quote(d.Reviewer), "status", t.named("approval", d.Status))
	}
	return t.Say(key, pairs...)
}

// people returns a paragraph for each review and delivery in the file.
func (w *writer) people(records []*evidence.Record) (paragraphs []string) {
	k := new(jury.Reckoning)
	for _, r := range records {
		p := &r.Payload
		pairs := []any{"actor", strconv.Quote(p.Actor()), "status", w.named("approval", p.ApprovalStatus), "time", word(p.Timestamp),
			"record", word(p.RecordID), "original", word(p.OriginalResponseID)}
		proved := w.holds(r, verify.Content, verify.Authentication, verify.HumanReview)
		switch {
		case p.ActionType == evidence.FinalJudgment:
			if k.Add(r) != nil {
				return paragraphs // the judgment is unreadable, which an earlier paragraph says
			}
		case p.ActionType == evidence.HumanReview && !proved:
			k.Doubt(r)
			paragraphs = append(paragraphs, w.Say("statement.decided_doubted", pairs...))
		case p.ActionType == evidence.HumanReview:
			key := "statement.decided"
			if d := k.Decide(r); d != nil && d.Position != "" {
				key, pairs = "statement.decided_verdict", append(pairs, "position", w.position(d.Position))
			} else if d != nil {
				key = "statement.decided_open"
			}
			paragraphs = append(paragraphs, w.join(w.Say(key, pairs...), w.reasonOf(r)))
		case p.ActionType == evidence.Delivery && proved:
			paragraphs = append(paragraphs, w.Say("statement.delivered", pairs...))
		}
	}
	return paragraphs
}

// seats names the seats of the jury, the model that was asked for in each, and the models that answered.
func (w *writer) seats(acts []*evidence.Record) string {
	var settings *jury.Settings
	answered := map[string][]string{}
	for _, r := range acts {
		p := &r.Payload
		switch role := p.Role(); {
		case p.ActionType == evidence.PhaseOpening && settings == nil:
			if body, err := jury.DecodeBody(p.ActionType, p.Response); err == nil {
				settings = &body.(*jury.Opening).Settings
			}
		case role == evidence.RoleJuror || role == evidence.RoleJudge:
			if p.Model != jury.Unreported && !slices.Contains(answered[p.AgentID], p.Model) {
				answered[p.AgentID] = append(answered[p.AgentID], p.Model)
			}
		}
	}
	if settings == nil {
		return ""
	}
	var items []string
	for _, s := range settings.Everyone() {
		items = append(items, w.seat(s, answered[s.JurorID]))
	}
	return w.Say("statement.sat", "items", strings.Join(items, "; "))
}

func (w *writer) seat(s jury.Seat, answered []string) string {
	key := "statement.seat_model"
	others := slices.DeleteFunc(slices.Clone(answered), func(model string) bool { return jury.IsModel(model, s.Model) })
	switch {
	case s.Provider == jury.Offline:
		key = "statement.seat_rules"
	case len(answered) == 0:
		key = "statement.seat_silent"
	case len(others) > 0:
		key, answered = "statement.seat_other", others
	}
	var reported []string
	for _, model := range answered {
		reported = append(reported, word(model))
	}
	return w.Say(key, "seat", strconv.Quote(cmp.Or(s.RoleName, s.JurorID)), "model", word(s.Model), "provider", word(string(s.Provider)), "reported", strings.Join(reported, ", "))
}

// signed says of all acts together whether their actors signed them, and whether they are unchanged.
func (w *writer) signed() string {
	for _, g := range []verify.Guarantee{verify.Authentication, verify.Content} {
		if f := w.report.Of(g); f.Status != verify.Proved {
			return w.answer("acts", f)
		}
	}
	return w.join(w.Say("statement.acts_proved"), w.keysBy(w.report.Of(verify.NonRepudiation), "statement.keys_of_operator"))
}

func (w *writer) judgments(acts []*evidence.Record) []string {
	var paragraphs []string
	for _, r := range acts {
		if r.Payload.ActionType == evidence.FinalJudgment {
			paragraphs = append(paragraphs, w.judgment(r))
		}
	}
	if paragraphs == nil {
		return []string{w.Say("statement.no_judgment")}
	}
	return paragraphs
}

func (w *writer) judgment(r *evidence.Record) string {
	var j jury.Judgment
	if err := json.Unmarshal(r.Payload.Response, &j); err != nil {
		return w.Say("statement.unreadable", "reason", inert(evidence.Steady(err).Error()))
	}
	degraded, inconclusive := "statement.degraded", "statement.inconclusive"
	f, reasons := w.report.Of(verify.Verdict), j.Review
	if f.Status != verify.Proved { // then its qualifications are also only the file's word
		degraded, inconclusive, reasons = "statement.degraded_stated", "statement.inconclusive_stated", nil
	}
	text := w.Say("statement.judged."+string(f.Status), "position", w.position(j.Position), "score", j.Score, "method", w.named("sealed_method", j.Method), "reason", w.reason(f))
	if j.Degraded {
		text = w.join(text, w.Say(degraded))
	}
	if j.Inconclusive {
		text = w.join(text, w.Say(inconclusive))
	}
	return w.join(text, w.reasons(reasons))
}

// reasons says why a person must see a verdict.
func (t tongue) reasons(list []jury.ReviewReason) string {
	var said []string
	for _, reason := range list {
		said = append(said, cmp.Or(t.Say("statement.must_see."+string(reason)), t.Say("statement.must_see", "reason", word(string(reason)))))
	}
	return t.join(said...)
}

// beside returns what a reader should know beside the verdict: who abstained, what the judge had found by itself, what the discussion did, who
// was moved by what, and how many votes the votes are worth. Nothing of it is stated unless verification proved the verdict: all of it follows
// from the same acts by the same rules.
func (w *writer) beside(acts []*evidence.Record) []string {
	if w.report.Of(verify.Verdict).Status != verify.Proved {
		return nil
	}
	state, err := replayed(acts)
	if err != nil || !state.Judged {
		return nil // the report says so
	}
	r, names := &state.Result, map[string]string{} // the quoted names of the seats by their ids
	for _, seat := range state.Settings.Seats {
		names[seat.JurorID] = strconv.Quote(cmp.Or(seat.RoleName, seat.JurorID))
	}
	var said []string
	say := func(key string, pairs ...any) { said = append(said, w.Say(key, pairs...)) }
	for _, id := range r.Abstentions {
		say("statement.abstained", "juror", names[id])
	}
	if alone := r.JudgeReading; alone != nil {
		say("statement.judge_alone", "position", w.position(alone.Position), "score", alone.TotalScore)
	}
	if after := r.Phase3Judgment.AfterTalk; after != nil {
		say("statement.after_talk", "position", w.position(after.Position), "score", after.Score)
	}
	if votes := r.EffectiveVotes; votes != nil {
		key := "statement.votes_assumed"
		if votes.Measured {
			key = "statement.votes_measured"
		}
		say(key, "votes", fmt.Sprintf("%.2f", votes.Votes))
	}
	return []string{w.join(said...), w.talk(r, names)}
}

func replayed(acts []*evidence.Record) (*jury.Replayed, error) {
	var list []jury.Act
	for _, r := range acts {
		a, err := jury.ReadAct(r)
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	return jury.Replay(evidence.Digest{}, list)
}

// talk says how far the discussion moved the jurors, and who was moved by what.
func (w *writer) talk(r *jury.Result, names map[string]string) string {
	if r.Talk == nil {
		return ""
	}
	said := []string{w.Say("statement.talk", "changes", r.Talk.Changes, "majority", r.Talk.ToMajority, "conformity", fmt.Sprintf("%.2f", r.Talk.Conformity))}
	for _, c := range r.Changes {
		said = append(said, w.moved(c, names))
	}
	return w.join(said...)
}

func (w *writer) moved(c jury.Change, names map[string]string) string {
	var toward []string
	for _, id := range c.Toward {
		toward = append(toward, names[id])
	}
	how := "uncited"
	if len(c.Cites) > 0 {
		how = "citing"
	}
	if len(toward) == 0 {
		how += "_alone"
	}
	pairs := []any{"juror", names[c.JurorID], "from", w.position(c.From), "to", w.position(c.To), "round", c.RoundNumber, "toward", strings.Join(toward, ", ")}
	if len(c.Cites) > 0 {
		pairs = append(pairs, "message", c.Cites[0].Message, "quote", strconv.Quote(shortened(c.Cites[0].Quote)))
	}
	return w.Say("statement.moved."+how, pairs...)
}

// mostOfSet is how many entries of a set a sentence names.
const mostOfSet = 16

// proofs says what the proofs about hidden values show that the record carries. It asserts only what holds, of a record whose content and author
// are proved: an unsigned commitment hides no one's value.
func (w *writer) proofs(r *evidence.Record) string {
	if len(r.Properties) == 0 || !w.holds(r, verify.Content, verify.Authentication) {
		return ""
	}
	var said []string
	for i := range w.report.Properties {
		if shown := &w.report.Properties[i]; shown.Record == r.Payload.RecordID {
			said = append(said, w.proof(shown))
		}
	}
	if len(said) > 0 {
		said = append(said, w.Say("statement.hidden.own_word"))
	}
	if f := w.answers.For(verify.Property, r.Payload.RecordID); f.Status != verify.Proved {
		said = append(said, w.Say("statement.hidden.doubt."+string(f.Status), "reason", w.reason(f)))
	}
	return w.join(said...)
}

// Proofs says what each proof of a report shows, in the report's order. Like the statement, it says so only of records whose content and author
// are proved.
func Proofs(report *verify.Report, lang Lang) (said []string) {
	w := &writer{tongue: in(lang), report: report, answers: report.Answers()}
	for i := range report.Properties {
		shown := &report.Properties[i]
		if one := w.proof(shown); one != "" && w.proved(shown.Record, verify.Content, verify.Authentication) {
			said = append(said, one)
		}
	}
	return said
}

// proof says what one proof shows. It returns "" for a statement of a form that it does not know.
func (w *writer) proof(shown *verify.ShownProperty) string {
	s, err := property.ParseStatement(shown.Statement)
	if err != nil {
		return ""
	}
	said := w.Say("statement.hidden."+string(s.Form), "pointer", word(s.Members[0].Pointer), "lo", value(s.Lo), "hi", value(s.Hi), "set", w.values(s.Set),
		"years", s.Years, "at", word(s.At))
	if said != "" && s.Audience != "" {
		said = w.join(said, w.Say("statement.hidden.audience", "audience", strconv.Quote(shortened(s.Audience))))
	}
	return said
}

// value writes a value of a statement: text in quotes, and other values as they stand in JSON.
func value(v jsontext.Value) string {
	if v.Kind() == '"' {
		return quoted(v)
	}
	return inert(shortened(string(v)))
}

func (w *writer) values(set []jsontext.Value) string {
	var list []string
	for _, v := range set[:min(len(set), mostOfSet)] {
		list = append(list, value(v))
	}
	if more := len(set) - len(list); more > 0 {
		list = append(list, w.Say("statement.hidden.more", "n", more))
	}
	return strings.Join(list, w.Say("statement.hidden.between"))
}
