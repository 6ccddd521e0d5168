package trial

import (
	"time"

	"jurat/evidence"
	"jurat/jury"
)

// An Event tells what one act of a trial means to somebody who watches. Each is projected from one sealed record.
type Event interface{ Head() EventHead }

// EventHead is what every event has.
type EventHead struct {
	Type         string    `json:"type"`
	Seq          int64     `json:"seq"` // from 1 within a trial; the same whenever the trial's records are projected
	At           time.Time `json:"at"`  // as the record claims
	SubmissionID string    `json:"submissionId"`
}

// Head implements Event.
func (h EventHead) Head() EventHead { return h }

// The events of a trial, in the order in which their types first occur. After TrialClosed only PersonDecided comes.
type (
	// SubmissionReceived opens a trial.
	SubmissionReceived struct {
		EventHead
		Record evidence.Digest `json:"record"`
		Case   evidence.Digest `json:"case"`
	}
	// PhaseStarted opens phase 1 or 3.
	PhaseStarted struct {
		EventHead
		Phase    jury.Phase    `json:"phase"`
		Settings jury.Settings `json:"settings"`
		Asked    []string      `json:"asked"` // seats, in their order
	}
	// JurorEvaluated is an evaluation of phase 1.
	JurorEvaluated struct {
		EventHead
		Record     evidence.Digest `json:"record"`
		Model      string          `json:"model"`
		Evaluation jury.Evaluation `json:"evaluation"`
	}
	// JurorAbsent says that a seat gave no answer that counts.
	JurorAbsent struct {
		EventHead
		Record evidence.Digest `json:"record"`
		jury.Absent
	}
	// TrialDegraded says from when on the trial is degraded: an answer is missing, or a stand-in was put in its place. It comes
	// once, after the event of the act that made it so.
	TrialDegraded struct {
		EventHead
		Record evidence.Digest    `json:"record"`
		Juror  string             `json:"juror"` // or the judge
		Reason jury.AbsenceReason `json:"reason"`
	}
	// ConsensusChecked ends phase 1.
	ConsensusChecked struct {
		EventHead
		Phase jury.Phase `json:"phase"`
		jury.ConsensusResult
	}
	// RoundStarted opens a round of discussion.
	RoundStarted struct {
		EventHead
		Round        int      `json:"round"`
		SpeakerOrder []string `json:"speakerOrder"`
	}
	// JurorStated is a statement in a round. NewVerdict and NewScore are the juror's current ones, changed or not.
	JurorStated struct {
		EventHead
		Round           int           `json:"round"`
		Juror           string        `json:"juror"`
		Statement       string        `json:"statement"`
		PositionChanged bool          `json:"positionChanged"`
		NewVerdict      jury.Position `json:"newVerdict"`
		NewScore        int           `json:"newScore"`
	}
	// RoundCompleted ends a round.
	RoundCompleted struct {
		EventHead
		Round            int                  `json:"round"`
		ConsensusStatus  jury.ConsensusStatus `json:"consensusStatus"`
		AgreementLevel   float64              `json:"agreementLevel"`
		MajorityPosition *jury.Position       `json:"majorityPosition"`
	}
	// JudgeSpoke is the final judge's opinion.
	JudgeSpoke struct {
		EventHead
		Record  evidence.Digest `json:"record"`
		Model   string          `json:"model"`
		Opinion jury.Opinion    `json:"opinion"`
	}
	// Judged is the final judgment.
	Judged struct {
		EventHead
		Record   evidence.Digest `json:"record"`
		Judgment jury.Judgment   `json:"judgment"`
	}
	// TrialClosed ends the trial.
	TrialClosed struct {
		EventHead
		Acts int `json:"acts"`
	}
	// PersonDecided is a person's decision on the verdict, and what the trial comes to by that. It comes after TrialClosed, also
	// where the person was faster.
	PersonDecided struct {
		EventHead
		Record   evidence.Digest   `json:"record"`
		Decision jury.Decision     `json:"decision"`
		Outcome  jury.TrialOutcome `json:"outcome"`
	}
)
