package trial

import (
	"time"

	"jurat/evidence"
	"jurat/jury"
)

// An Event tells a watcher what one act of a trial means. Each is derived from one sealed record.
type Event interface{ Head() EventHead }

// EventHead holds the members of every event.
type EventHead struct {
	Type         string    `json:"type"`
	Seq          int64     `json:"seq"` // from 1 within a trial; the same each time the trial's records are read
	At           time.Time `json:"at"`  // the record's claim
	SubmissionID string    `json:"submissionId"`
}

// Head implements Event.
func (h EventHead) Head() EventHead { return h }

// The events of a trial, in the order in which their types first occur. After TrialClosed, only PersonDecided can
// come.
type (
	// SubmissionReceived opens a trial.
	SubmissionReceived struct {
		EventHead
		Record evidence.Digest `json:"record"`
		Case   evidence.Digest `json:"case"`
	}
	// PhaseStarted opens phase 1, the repetition or phase 3.
	PhaseStarted struct {
		EventHead
		Phase    jury.Phase    `json:"phase"`
		Settings jury.Settings `json:"settings"`
		Asked    []string      `json:"asked"` // seats, in order
	}
	// JurorEvaluated is an evaluation of phase 1, or of a disputed seat that was asked again.
	JurorEvaluated struct {
		EventHead
		Record     evidence.Digest `json:"record"`
		Model      string          `json:"model"`
		Evaluation jury.Evaluation `json:"evaluation"`
		Abstains   bool            `json:"abstains,omitzero"` // asked again, the juror took another position
	}
	// JurorAbsent says that a seat gave no valid answer.
	JurorAbsent struct {
		EventHead
		Record evidence.Digest `json:"record"`
		jury.Absent
	}
	// TrialDegraded says that the trial is degraded from here on: an answer is missing, a stand-in replaces it, or a model gave it that is another
	// than the seat's or has ended. It comes once, after the event of the act that caused it.
	TrialDegraded struct {
		EventHead
		Record evidence.Digest    `json:"record"`
		Juror  string             `json:"juror"` // or the judge
		Reason jury.AbsenceReason `json:"reason"`

		Asked    string `json:"asked,omitzero"` // if another model answered, or one that has ended: the one of the seat
		Answered string `json:"answered,omitzero"`
	}
	// ConsensusChecked ends phase 1, or the repetition.
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
	// JurorStated is a statement in a round. NewVerdict and NewScore are the juror's current ones, whether they
	// changed or not.
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
	// JudgeSpoke is the final judge's opinion, or its own findings in phase 1, before it knows the jury's.
	JudgeSpoke struct {
		EventHead
		Record  evidence.Digest `json:"record"`
		Model   string          `json:"model"`
		Opinion jury.Opinion    `json:"opinion"`
		Alone   bool            `json:"alone,omitzero"` // in phase 1
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
	// PersonDecided is a person's decision on the verdict, and the outcome of the trial after it. It always comes
	// after TrialClosed, even if the person decided earlier.
	PersonDecided struct {
		EventHead
		Record   evidence.Digest   `json:"record"`
		Decision jury.Decision     `json:"decision"`
		Outcome  jury.TrialOutcome `json:"outcome"`
	}
)

// Reasons of a TrialDegraded whose answer another model gave, or one that has ended.
const (
	otherModel jury.AbsenceReason = "other_model"
	endedModel jury.AbsenceReason = "ended_model"
)
