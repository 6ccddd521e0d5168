package main

import (
	"fmt"
	"io"
	"strings"

	"jurat/evidence"
	"jurat/internal/subject"
	"jurat/internal/trial"
	"jurat/jury"
)

// transcript shows a trial as it happens. It hears nothing but events, which are projected from sealed records.
type transcript struct {
	*page
	names map[string]string // of seats, as people read them
}

func newTranscript(out io.Writer, silent bool) *transcript {
	if silent {
		out = io.Discard
	}
	return &transcript{page: newPage(out), names: map[string]string{}}
}

func (t *transcript) opening(folder string, on *subject.Case, s *jury.Settings) {
	t.line("%s", t.bold("The case of "+inert(on.Card.Name)))
	if folder != "" {
		folder += ": "
	}
	t.line("  %s%d messages, evidence %s", folder, len(on.Messages), on.Digest())
	switch n := offline(s); n {
	case 0:
	case len(s.Seats):
		t.text("  ", "The jurors are rules, not language models: this is a first sieve and a baseline, not the judgement of a jury of LLMs.")
	default:
		t.text("  ", fmt.Sprintf("%d of the %d jurors are rules, not language models.", n, len(s.Seats)))
	}
}

// offline counts the seats in which rules sit.
func offline(s *jury.Settings) int {
	n := 0
	for _, seat := range s.Seats {
		if seat.Provider == jury.Offline {
			n++
		}
	}
	return n
}

// event shows one event.
func (t *transcript) event(e trial.Event) {
	switch e := e.(type) {
	case trial.SubmissionReceived:
		t.line("  %s", t.dim(e.SubmissionID))
	case trial.PhaseStarted:
		t.phase(e)
	case trial.JurorEvaluated:
		t.evaluation(e.Evaluation)
	case trial.JurorAbsent:
		t.line("  %-24s %s (%s): %s", t.name(e.JurorID), t.paint(yellow, "absent"), e.Reason, inert(e.Detail))
	case trial.ConsensusChecked:
		t.consensus(e.ConsensusResult)
	case trial.RoundStarted:
		if e.Round == 1 {
			t.line("\n%s", t.bold("Discussion"))
		}
	case trial.JurorStated:
		t.statement(e)
	case trial.RoundCompleted:
		t.consensus(jury.ConsensusResult{ConsensusStatus: e.ConsensusStatus, AgreementLevel: e.AgreementLevel, MajorityPosition: e.MajorityPosition})
	case trial.JudgeSpoke:
		t.line("  %-24s %s %3d/100", t.name("judge"), t.position(e.Opinion.Position), e.Opinion.TotalScore)
	}
}

func (t *transcript) phase(e trial.PhaseStarted) {
	for _, seat := range e.Settings.Seats {
		t.names[seat.JurorID] = seat.RoleName
	}
	if e.Phase == jury.Initial {
		t.line("\n%s", t.bold("Each juror alone"))
		return
	}
	t.line("\n%s", t.bold("Judgment"))
}

// name is a juror's role, as people are shown it; its id where it has none.
func (t *transcript) name(id string) string {
	if name := t.names[id]; name != "" {
		return name
	}
	return id
}

func (t *transcript) evaluation(e jury.Evaluation) {
	mark := ""
	if e.Fallback {
		mark = "  " + t.paint(yellow, "[neutral stand-in: blocked by the provider's filter]")
	}
	t.line("  %-24s %s %3d/100  confidence %.2f%s", t.name(e.JurorID), t.position(e.Position), e.TotalScore, e.Confidence, mark)
	t.text("      ", e.Rationale)
	for _, f := range e.Findings {
		t.text("      ", fmt.Sprintf("- message %d, %s, %s%s: “%s”", f.Message, f.Rule, f.Severity, inRecord(f), f.Quote))
	}
}

// inRecord names the record that a finding rests on.
func inRecord(f jury.Finding) string {
	if f.Record == (evidence.Digest{}) {
		return ""
	}
	return ", record " + f.Record.Short()
}

func (t *transcript) statement(e trial.JurorStated) {
	badge := ""
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
func (t *transcript) conclusion(done *trial.Trial, file, data string) error {
	r := done.Result
	t.text("  ", r.Phase3Judgment.Rationale)
	t.line("\n%s  %s %d/100  by %s%s", t.bold("Verdict"), strings.TrimSpace(t.position(r.FinalVerdict)), r.FinalScore,
		r.Phase3Judgment.Method, t.paint(yellow, flags(r)))
	t.line("\n  %d acts, each signed, time-stamped and logged. Case file:", len(done.Records))
	t.line("    %s", file)
	t.line("  A stranger checks it, offline, with the trust file that you give:")
	t.line("    jurat --data %s trust > trust.json", quote(data))
	t.line("    jurat verify --trust trust.json %s", quote(file))
	return t.err
}

func flags(r *jury.Result) string {
	var words []string
	if r.Inconclusive {
		words = append(words, "inconclusive")
	}
	if r.Degraded {
		words = append(words, "degraded")
	}
	if r.Offline {
		words = append(words, "offline jurors: rules, not models")
	}
	if len(words) == 0 {
		return ""
	}
	return "  (" + strings.Join(words, "; ") + ")"
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
