package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"jurat/internal/docket"
	"jurat/internal/installation"
	"jurat/internal/plural"
	"jurat/internal/recording"
	"jurat/recorder"
)

// recorderStatus is what is known of the recorders of an installation.
type recorderStatus struct {
	Here     []recording.Process `json:"here"` // that run on this data folder, or died there
	Log      []docket.Recorder   `json:"log"`
	Findings []finding           `json:"findings"`
}

// statusOf looks at the data folder and the log.
func statusOf(ctx context.Context, i *installation.Installation, now time.Time, progress func(done, total int64)) (recorderStatus, error) {
	s := recorderStatus{Here: []recording.Process{}, Findings: []finding{}}
	here, err := recording.Look(ctx, recorder.Folder(i.Dir))
	if err != nil {
		return s, err
	}
	s.Here = append(s.Here, here...)
	if s.Log, err = docket.Recorders(ctx, i.Ledger, progress); err != nil {
		return s, err
	}
	var e examination
	for n := range s.Here {
		s.process(&e, &s.Here[n], now)
	}
	for _, r := range s.Log {
		s.known(&e, r)
	}
	s.Findings = append(s.Findings, e.Findings...)
	return s, nil
}

// process says what is to be done about a process.
func (s *recorderStatus) process(e *examination, p *recording.Process, now time.Time) {
	name := aboutRecorder(p.About.Recorder)
	waiting := fmt.Sprintf("%s under way, a journal of %s, %s of %s", plural.Of(p.Open, "call"), plural.Of(p.JournalBytes, "byte"), plural.Of(p.Copies, "copy"), plural.Of(p.CopyBytes, "byte"))
	if p.Damaged > 0 {
		waiting += fmt.Sprintf(", %s of the journal that cannot be read", plural.Of(p.Damaged, "part"))
	}
	switch {
	case !p.Running:
		e.add(name, look, "it died with "+waiting, "the next recorder on this data folder seals what became of the calls: start one, as 'jurat record proxy'")
	case p.State.Trouble != "":
		e.add(name, look, fmt.Sprintf("it runs, and cannot seal: %s; %s that ended, %s that passed without a record: %s", waiting, plural.Of(p.State.Waiting, "call"), plural.Of(p.State.Missed, "call"), p.State.Trouble),
			"'jurat doctor' says what is wrong with the log; what waits is sealed as soon as it seals again")
	case s.silent(p, now):
		e.add(name, look, "it runs, and its heartbeat is overdue: the last one was "+s.lastSign(p).UTC().Format(time.RFC3339), "see what it logs; restart it if it hangs: what is under way is sealed as lost then")
	default:
		e.add(name, fine, fmt.Sprintf("it runs since %s: %s sealed, %s", p.About.Began.UTC().Format(time.RFC3339), plural.Of(p.State.Sealed, "call"), waiting), "")
	}
}

// aboutRecorder names a recorder in a finding.
func aboutRecorder(name string) string {
	if name == "" || name == "recorder" {
		return "recorder"
	}
	return "recorder " + name
}

// lastSign is when the log last heard of a process.
func (s *recorderStatus) lastSign(p *recording.Process) time.Time {
	last := p.About.Began
	for _, r := range s.Log {
		if at, err := time.Parse(time.RFC3339, r.Heartbeat); r.Name == p.About.Recorder && err == nil && at.After(last) {
			last = at
		}
	}
	return last
}

// silent reports whether two heartbeats are missing.
func (s *recorderStatus) silent(p *recording.Process, now time.Time) bool {
	return p.About.Heartbeat > 0 && now.Sub(s.lastSign(p)) > 2*time.Duration(p.About.Heartbeat)*time.Millisecond+time.Minute
}

// known says what is to be done about a recorder that the log knows and this folder does not.
func (s *recorderStatus) known(e *examination, r docket.Recorder) {
	for _, p := range s.Here {
		if p.About.Recorder == r.Name {
			return
		}
	}
	switch {
	case r.Started == "":
		e.add(aboutRecorder(r.Name), look, "the log has acts of it, and no start", "'jurat records --action recorder_event' lists them")
	case r.Stopped != "":
		after := ""
		if r.Counted {
			after = ", after " + plural.Of(r.Calls, "call")
		}
		e.add(aboutRecorder(r.Name), fine, "it stopped at "+r.Stopped+after+": "+r.Reason, "")
	default:
		e.add(aboutRecorder(r.Name), look, "it began at "+r.Started+", did not say that it stopped, and does not run on this data folder", "if it runs on no other machine, it died: start a recorder where it ran")
	}
}

// recorders says what is known of the recorders.
func (c *doctorCmd) recorders(ctx context.Context, a *app, io stdio) error {
	return a.with(ctx, func(i *installation.Installation) error {
		s, err := statusOf(ctx, i, time.Now(), progress(io, "records looked at"))
		if err != nil {
			return err
		}
		code := (&examination{Findings: s.Findings}).code()
		if c.JSON {
			return closing(code, io.json(s))
		}
		p := newPrinter(io.out)
		p.recorders(s)
		return closing(code, p.err)
	})
}

// calls says how many calls a recorder has sealed since its start. Of one that does not run here its heartbeats tell, and its end; ends that earlier programs sealed tell nothing of the last calls.
func (s *recorderStatus) calls(r docket.Recorder) string {
	runs, here := false, int64(0)
	for _, proc := range s.Here {
		if proc.Running && proc.About.Recorder == r.Name {
			runs, here = true, here+proc.State.Sealed
		}
	}
	switch {
	case runs:
		return fmt.Sprint(max(r.Calls, here))
	case r.Counted:
		return fmt.Sprint(r.Calls)
	case r.Calls > 0:
		return fmt.Sprintf("≥ %d", r.Calls)
	}
	return "-"
}

// recorders prints what is known of recorders.
func (p *printer) recorders(s recorderStatus) {
	if len(s.Findings) == 0 {
		p.line("No recorder has sealed here. 'jurat record run' and 'jurat record proxy' begin one.")
		return
	}
	p.examined(s.Findings)
	t := table{heads: []head{{name: "recorder"}, {name: "mode", rank: 1}, {name: "started", rank: 2}, {name: "heartbeat", rank: 3}, {name: "calls", right: true}, {name: "missed", right: true}, {name: "lost", right: true}}}
	for _, r := range s.Log {
		t.row(r.Name, string(r.Mode), r.Started, r.Heartbeat, s.calls(r), fmt.Sprint(r.Missed), fmt.Sprint(r.Lost))
	}
	p.line("")
	p.table(&t)
	p.text("", "calls: sealed since the start; of a recorder that does not run here, by its heartbeats and its end (≥: at least). missed: passed without a record, ever. lost: in a crash, among its last "+fmt.Sprint(docket.NewestCalls)+" records.")
	for _, proc := range s.Here {
		if proc.About.Agent != "" {
			p.line("%s records the agent %s where no token says another.", proc.About.Recorder, proc.About.Agent)
		}
	}
}

// examined prints what was found.
func (p *printer) examined(list []finding) {
	colours := map[state]string{fine: green, look: yellow, broken: red}
	wide := 13
	for _, f := range list {
		wide = max(wide, columns(f.About))
	}
	for _, f := range list {
		p.line("%s %s %s", p.paint(colours[f.State], fmt.Sprintf("%-7s", f.State)), f.About+strings.Repeat(" ", wide-columns(f.About)), f.What)
		if f.Do != "" {
			p.text(strings.Repeat(" ", 9+wide), f.Do)
		}
	}
}
