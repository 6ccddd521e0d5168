package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"jurat/evidence"
	"jurat/internal/court/juror"
	"jurat/internal/court/subject"
	"jurat/internal/court/trial"
	"jurat/internal/kit/plural"
	"jurat/jury"
)

// transcript shows a trial as it happens. It hears nothing but events, which are projected from sealed records.
type transcript struct {
	*printer
	on     *subject.Case
	names  map[string]string // of seats, as people read them
	models map[string]string // of seats in which models sit, as configured
}

func newTranscript(out io.Writer, silent bool) *transcript {
	if silent {
		out = io.Discard
	}
	return &transcript{printer: newPrinter(out), names: map[string]string{}, models: map[string]string{}}
}

func (t *transcript) opening(folder string, on *subject.Case, s *jury.Settings) {
	t.on = on
	t.line("%s", t.bold("The case of "+nameOfAgent(on)))
	t.line("  %s%s, evidence %s", pick(folder != "", folder+": ", ""), plural.Of(len(on.Messages), "message"), on.Digest())
	for _, line := range aboutCase(on) {
		t.text("  ", line)
	}
	switch n := offline(s); n {
	case 0:
	case len(s.Seats):
		t.text("  ", "The jurors are rules, not language models: this is a first sieve and a baseline, not the judgement of a jury of LLMs.")
	default:
		t.text("  ", fmt.Sprintf("%d of the %d jurors are rules, not language models.", n, len(s.Seats)))
	}
}

func nameOfAgent(on *subject.Case) string {
	return cmp.Or(on.Card.Name, "an agent without a card")
}

func aboutCase(on *subject.Case) []string {
	var lines remarks
	lines.add(!on.HasCard, "There is no agent card: what the agent may do by its own word is not checked.")
	if s := on.Source; s != nil {
		lines.add(true, "The conversation comes from a file of %s: %q.", s.Kind, s)
	}
	for _, o := range on.LeftOut {
		lines.add(true, "Not shown to the jurors: %s (%d).", o.What, o.Count)
	}
	return lines
}

func offline(s *jury.Settings) int {
	return count(s.Seats, func(seat jury.Seat) bool { return seat.Provider == jury.Offline })
}

func (t *transcript) event(e trial.Event) {
	switch e := e.(type) {
	case trial.SubmissionReceived:
		t.line("  %s", t.dim(e.SubmissionID))
	case trial.PhaseStarted:
		t.phase(e)
	case trial.JurorEvaluated:
		t.evaluation(e.Evaluation, e.Model)
		t.lineIf(e.Abstains, "      %s", t.paint(yellow, "abstains: asked again, it took another position"))
	case trial.JurorAbsent:
		t.line("  %-24s %s (%s): %s", t.name(e.JurorID), t.paint(yellow, "absent"), e.Reason, e.Detail)
	case trial.ConsensusChecked:
		t.consensus(e.ConsensusResult)
	case trial.RoundStarted:
		t.lineIf(e.Round == 1, "\n%s", t.bold("Discussion"))
	case trial.JurorStated:
		t.statement(e)
	case trial.RoundCompleted:
		t.consensus(jury.ConsensusResult{ConsensusStatus: e.ConsensusStatus, AgreementLevel: e.AgreementLevel, MajorityPosition: e.MajorityPosition})
	case trial.JudgeSpoke:
		t.line("  %-24s %s %3d/100%s", t.name("judge"), t.position(e.Opinion.Position), e.Opinion.TotalScore, t.by("judge", e.Model))
	}
}

func (t *transcript) phase(e trial.PhaseStarted) {
	for _, seat := range e.Settings.Seats {
		t.seat(seat.JurorID, seat)
	}
	if judge := e.Settings.Judge; judge != nil {
		t.names[judge.JurorID] = judge.RoleName
		t.seat("judge", *judge)
	}
	switch e.Phase {
	case jury.Initial:
		t.line("\n%s", t.bold("Each juror alone"))
		return
	case jury.Repetition:
		t.line("\n%s", t.bold("Disputed seats, asked again"))
		return
	}
	if s := e.Settings; s.MaxRounds == 0 && offline(&s) == len(s.Seats) {
		t.line("\nNo discussion was held: rules have nothing to say to each other.")
	}
	t.line("\n%s", t.bold("Judgment"))
}

func (t *transcript) seat(key string, seat jury.Seat) {
	if key == seat.JurorID {
		t.names[key] = seat.RoleName
	}
	if seat.Provider != jury.Offline {
		t.models[key] = seat.Model
	}
}

// by names the model that answered, in a seat in which models sit. One that is not the configured one stands out.
func (t *transcript) by(key, reported string) painted {
	configured, is := t.models[key]
	switch {
	case !is:
		return ""
	case !jury.OtherModel(reported, configured):
		return "  " + t.dim(reported)
	}
	return "  " + t.paint(yellow, "answered by "+reported+", not "+configured)
}

func (t *transcript) name(id string) string {
	return cmp.Or(t.names[id], id)
}

func (t *transcript) evaluation(e jury.Evaluation, model string) {
	mark := painted("")
	if e.Fallback {
		mark = "  " + t.paint(yellow, "[neutral stand-in: blocked by the provider's filter]")
	}
	t.line("  %-24s %s %3d/100  confidence %.2f%s%s", t.name(e.JurorID), t.position(e.Position), e.TotalScore, e.Confidence, t.by(e.JurorID, model), mark)
	t.text("      ", e.Rationale)
	for _, f := range e.Findings {
		t.finding(f)
	}
}

// finding shows what a juror points at. An invented quotation is said to be one before it is shown.
func (t *transcript) finding(f jury.Finding) {
	colour, mark := "", ""
	if f.Unfounded || !juror.Stands(t.on, f) {
		colour, mark = yellow, ", but these words do not stand there, and count for nothing"
	}
	t.paragraph(colour, "      ", fmt.Sprintf("- message %d, %s, %s%s%s: “%s”", f.Message, f.Rule, f.Severity, inRecord(f), mark, f.Quote))
}

func inRecord(f jury.Finding) string {
	if f.Record == (evidence.Digest{}) {
		return ""
	}
	return ", record " + f.Record.Short()
}

func (t *transcript) statement(e trial.JurorStated) {
	badge := painted("")
	if e.PositionChanged {
		badge = "  " + t.paint("7", " position changed ")
	}
	t.line("  %-24s %s %3d/100%s", t.name(e.Juror), t.position(e.NewVerdict), e.NewScore, badge)
	t.text("      ", e.Statement)
}

func (t *transcript) consensus(c jury.ConsensusResult) {
	majority := ""
	if c.MajorityPosition != nil {
		majority = " for " + string(*c.MajorityPosition)
	}
	t.line("  %s", t.dim(fmt.Sprintf("%s, agreement %.2f%s", c.ConsensusStatus, c.AgreementLevel, majority)))
}

// conclusion shows the verdict, where the case file is, and how a stranger checks it.
func (t *transcript) conclusion(done *trial.Trial, file, again string) error {
	r := done.Result
	t.text("  ", r.Phase3Judgment.Rationale)
	t.line("\n%s  %s %d/100  by %s%s", t.bold("Verdict"), t.positionIn(r.FinalVerdict, string(r.FinalVerdict)), r.FinalScore,
		r.Phase3Judgment.Method, t.paint(yellow, flags(r).inBrackets()))
	t.course(r)
	t.bill(&done.Bill)
	t.line("\n  %d acts, each signed, time-stamped and logged. Case file:", len(done.Records))
	t.line("    %s", file)
	t.line("  A stranger checks it, offline, with the trust file that you give:")
	t.line("    %s trust > trust.json", again)
	t.line("    jurat verify --trust trust.json %s", quote(file))
	return t.err
}

// course says how the verdict came about: the vote of phase 1, that after the discussion, who moved, and who was missing.
func (t *transcript) course(r *jury.Result) {
	votes := "alone " + string(r.Phase1Verdict) + pick(r.TotalRounds > 0, ", after the discussion "+string(r.DiscussionVerdict), "")
	t.line("  votes: %s, finally %s", votes, r.FinalVerdict)
	for _, c := range r.Changes {
		what := "without citing anything new from the evidence"
		if !c.Unsupported {
			what = fmt.Sprintf("citing message %d: “%s”", c.Cites[0].Message, c.Cites[0].Quote)
		}
		t.text("  ", fmt.Sprintf("%s moved from %s to %s in round %d, %s", t.name(c.JurorID), c.From, c.To, c.RoundNumber, what))
	}
	t.beside(r)
	for _, a := range r.Absences {
		t.text("  ", fmt.Sprintf("%s was absent in %s (%s)", t.name(a.JurorID), place(a.Phase, a.RoundNumber), a.Reason))
	}
}

// beside says what a person should know beside the verdict: why one must see it, who abstained, what talk did, and what the votes are worth.
func (t *transcript) beside(r *jury.Result) {
	j := &r.Phase3Judgment
	for _, reason := range j.Review {
		t.line("  %s", t.paint(yellow, "a person must see it: "+reviewWords[reason]))
	}
	for _, id := range r.SameVendor {
		t.text("  ", t.name(id)+" is of the vendor that the agent's card or records name: models tend to favour their own kind")
	}
	for _, id := range r.Abstentions {
		t.text("  ", t.name(id)+" was asked twice, and took two positions")
	}
	if own := r.JudgeReading; own != nil {
		t.text("  ", fmt.Sprintf("the judge's own reading, before it knew the jury's view: %s %d/100", own.Position, own.TotalScore))
	}
	if after := j.AfterTalk; after != nil {
		t.text("  ", fmt.Sprintf("after the discussion the same weights would give %s %d/100", after.Position, after.Score))
	}
	if talk := r.Talk; talk != nil && talk.Changes > 0 {
		t.text("  ", fmt.Sprintf("conformity: %.2f of the changes went to the majority without a new finding", talk.Conformity))
	}
	if votes := r.EffectiveVotes; votes != nil {
		t.text("  ", fmt.Sprintf("effective votes: %.2f (%s)", votes.Votes, pick(votes.Measured, "measured", "assumed: jurors of one model count as one")))
	}
}

var reviewWords = map[jury.ReviewReason]string{
	jury.TurnedByTalk: "the same method on the votes before the discussion gives another position",
	jury.OneExtreme:   "one juror alone holds its position, and without it the verdict would be another",
	jury.JudgeMilder:  "the judge is milder than the jurors' majority, or than a juror that fails the agent and quotes why",
}

func place(phase jury.Phase, round int) string {
	return cmp.Or(map[jury.Phase]string{jury.Initial: "phase 1", jury.Repetition: "the repetition", jury.Discussion: fmt.Sprintf("round %d", round)}[phase], "the judgment")
}

func (t *transcript) bill(b *jury.Bill) {
	if b.Calls > 0 {
		without := pick(b.Unpriced > 0, fmt.Sprintf(" without %s whose cost is not known", plural.Of(b.Unpriced, "call")), "")
		t.line("  calls: %d, of which %d with a problem; %s%s by the prices at hand", b.Calls, b.Problems, dollars(b.Cost), without)
	}
}

// flags says in words what takes away from a result.
func flags(r *jury.Result) (words remarks) {
	words.add(r.Inconclusive, "inconclusive")
	words.add(r.Degraded, "degraded%s", missing(r))
	words.add(len(r.Phase3Judgment.Review) > 0, "a person must see it")
	words.add(r.Offline, "offline jurors: rules, not models")
	return words
}

func (r remarks) inBrackets() string { return pick(r == nil, "", "  ("+strings.Join(r, "; ")+")") }

// missing counts those who were absent or had a stand-in, at any time, and names the seats in which another model answered, or one that has ended.
func missing(r *jury.Result) string {
	who, why := map[string]bool{}, remarks{}
	for _, a := range r.Absences {
		who[a.JurorID] = true
	}
	why.add(len(who) > 0, "%d absent", len(who))
	n := standIns(r)
	why.add(n > 0, "%s", plural.Of(n, "stand-in"))
	for _, o := range r.OtherModels {
		why.add(true, "in the seat of %s answered %s, not %s", o.JurorID, o.Answered, o.Asked)
	}
	for _, e := range r.EndedModels {
		why.add(true, "in the seat of %s sits %s, which ended on %s%s", e.JurorID, e.Model, e.On, pick(e.Successor == "", "", "; its successor is "+e.Successor))
	}
	return pick(len(why) == 0, "", ": "+strings.Join(why, ", "))
}

func standIns(r *jury.Result) int {
	who := map[string]bool{}
	note := func(e *jury.Evaluation) {
		if e != nil && e.Fallback {
			who[e.JurorID] = true
		}
	}
	for i := range r.Phase1Evaluations {
		note(&r.Phase1Evaluations[i])
	}
	for _, round := range r.DiscussionRounds {
		for _, s := range round.Statements {
			note(s.UpdatedEvaluation)
		}
	}
	return len(who)
}

// quote makes an argument safe to paste into a shell.
func quote(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./,:=@%+", c)
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// waiting says on stderr what a trial waits for while models think, once that takes longer than a second. On a terminal it is one line that
// is renewed. Elsewhere it is a line when the wait is a second old, and one for each answer after that.
type waiting struct {
	to     io.Writer // messages
	screen *os.File  // the terminal whose last line is renewed; nil: none
	about  string    // which of several cases

	mu     sync.Mutex // held while something is printed, too, so that nothing comes between
	what   string     // what the jurors are asked for
	since  time.Time
	asked  []string // who has not answered
	came   []string // who has
	spent  int64    // millionths of a dollar
	told   bool     // that this is waited for
	drawn  string   // on the screen
	ticker *time.Ticker
	ended  chan struct{}
}

// patience is how long nothing is said of a wait.
const patience = time.Second

// await watches the jurors of a trial until its end is called; nil: nothing is to be said. about names the case if several run: no line is renewed.
func await(out stdio, about string, config *trial.Config) *waiting {
	if out.hushed() {
		return nil
	}
	w := &waiting{to: out.err, ticker: time.NewTicker(patience / 4), ended: make(chan struct{})}
	if about != "" {
		w.about = about + ": "
	} else if os.Getenv("TERM") != "dumb" {
		w.screen = terminalOf(out.err)
	}
	*config = config.Wrapped(func(j jury.Juror, _ string) jury.Juror { return awaited{j, w} })
	go func() {
		for {
			select {
			case <-w.ticker.C:
				w.look()
			case <-w.ended:
				return
			}
		}
	}()
	return w
}

func (w *waiting) end() {
	if w == nil {
		return
	}
	w.ticker.Stop()
	close(w.ended)
	w.beside(func() { w.asked = nil })
}

// beside does something that prints, or changes what is waited for, with the line out of the way.
func (w *waiting) beside(do func()) {
	if w == nil {
		do()
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.draw("")
	do()
}

type awaited struct {
	juror jury.Juror
	w     *waiting
}

// Answer implements jury.Juror.
func (j awaited) Answer(ctx context.Context, b jury.Brief) (jury.Answer, error) {
	who := j.w.begins(&b)
	a, err := j.juror.Answer(ctx, b)
	j.w.answered(who, costOf(a), err)
	return a, err
}

func costOf(a jury.Answer) int64 {
	var bill jury.Bill
	effort, _ := jury.ReadEffort(a.Origin.Metadata) // the clerk finds out, and says so
	bill.Add(effort)
	return bill.Cost
}

var asking = map[jury.Phase]string{jury.Initial: "each juror alone", jury.Repetition: "disputed seats, asked again", jury.Judging: "judgment"}

func (w *waiting) begins(b *jury.Brief) (who string) {
	who, what := cmp.Or(b.Seat.RoleName, b.Seat.JurorID), cmp.Or(asking[b.Phase], fmt.Sprintf("discussion, round %d", b.RoundNumber))
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.what != what {
		w.what, w.since, w.asked, w.came, w.told = what, time.Now(), nil, nil, false
	}
	w.asked = append(w.asked, who)
	return who
}

func (w *waiting) answered(who string, cost int64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.asked, who); i >= 0 {
		w.asked = slices.Delete(w.asked, i, i+1)
	}
	w.came = append(w.came, who)
	w.spent += cost
	if w.told && w.screen == nil && !errors.Is(err, context.Canceled) {
		w.say(who + pick(err == nil, " has answered", " has given no answer"))
	}
}

func (w *waiting) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case len(w.asked) == 0 || time.Since(w.since) < patience:
	case w.screen != nil:
		w.draw(w.state(""))
	case !w.told:
		w.told = true
		w.say("")
	}
}

func (w *waiting) say(event string) { fmt.Fprintf(w.to, "jurat: %s\n", w.state(event)) }

func (w *waiting) state(event string) string {
	parts := remarks{w.about + w.what}
	parts.add(event != "", "%s", event)
	parts.add(event == "" && len(w.came) > 0, "%s%s answered", strings.Join(w.came, ", "), plural.Or(len(w.came), " has", " have"))
	parts.add(len(w.asked) > 0, "waiting for %s", strings.Join(w.asked, ", "))
	parts.add(true, "%s", time.Since(w.since).Truncate(time.Second))
	parts.add(w.spent > 0, "%s so far", dollars(w.spent))
	return strings.Join(parts, "; ")
}

// draw puts a text in place of the screen's last line; "" removes it.
func (w *waiting) draw(text string) {
	if w.screen == nil || text == w.drawn {
		return
	}
	w.drawn = text
	text = inert(text)
	if most := terminalColumns(w.screen); most > 0 {
		text = shorter(text, most-1)
	}
	fmt.Fprintf(w.screen, "\r\x1b[K%s", text)
}
