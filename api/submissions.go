package api

import (
	"encoding/json"

	"jurat/jury"
)

// A NewSubmission puts an agent before the jury. It has one kind of evidence: a conversation, records from anywhere,
// or records of the installation's log.
type NewSubmission struct {
	AgentCard    json.RawMessage `json:"agentCard,omitzero"`    // A2A v1.0 or v0.3; may be left out
	Conversation json.RawMessage `json:"conversation,omitzero"` // in one of the forms that docs/case.md describes
	Format       string          `json:"format,omitzero"`       // the form of the conversation, if its structure does not show it
	Records      json.RawMessage `json:"records,omitzero"`      // a record file or a bundle; the installation verifies it with its own trust file
	ChainID      string          `json:"chainId,omitzero"`      // a chain of records in the log; what is sealed apart stays so
	Recorded     string          `json:"recorded,omitzero"`     // a chain of the log in which recorders saw something, with the texts sealed apart that the caller may see
}

// A State is the state of a submission.
type State string

const (
	Queued    State = "queued"     // it waits for its turn
	UnderWay  State = "under_way"  // the jury works on it
	Over      State = "over"       // there is a verdict
	BrokenOff State = "broken_off" // it stopped without a verdict, and no process works on it
	Cancelled State = "cancelled"  // a person stopped it
)

// A Cancellation asks for a trial to be stopped.
type Cancellation struct {
	Reason string `json:"reason"` // at most 1,000 bytes; it is recorded
}

// A Taking says that a reviewer means to decide on a trial that waits for a person.
type Taking struct {
	Reviewer string `json:"reviewer,omitzero"` // to whom an operator assigns it; absent: the caller
	Reason   string `json:"reason,omitzero"`   // at most 1,000 bytes; it is recorded
}

// A GivingBack says that the reviewer who has a trial does not mean to decide on it any more.
type GivingBack struct {
	Reason string `json:"reason,omitzero"` // at most 1,000 bytes; it is recorded
}

// Taken says which reviewer means to decide on a trial. It hinders no other, and ends with the next decision.
type Taken struct {
	Reviewer string `json:"reviewer"`
	Since    string `json:"since"`
	By       string `json:"by"` // who said so: the reviewer, or an operator
	Reason   string `json:"reason,omitzero"`
}

// A Submission is an agent before the jury.
type Submission struct {
	ID        string `json:"id"`
	State     State  `json:"state"`
	Reason    string `json:"reason,omitzero"` // why it was broken off or cancelled
	Next      string `json:"next,omitzero"`   // when the server tries it again by itself, if it was broken off
	Ahead     int    `json:"ahead,omitzero"`  // how many wait before it
	Submitter string `json:"submitter"`
	Agent     string `json:"agent"` // as its card names it; without a card, the actor of the records
	Case      string `json:"case"`  // digest of the evidence
	Submitted string `json:"submitted"`
	Last      string `json:"last"` // when the last act was
	Acts      int    `json:"acts"`
	Offline   bool   `json:"offline"`  // the jurors are rules, not models
	Degraded  bool   `json:"degraded"` // an answer is missing, or was replaced by a stand-in

	CancelledBy string `json:"cancelledBy,omitzero"` // who cancelled it; if it is still under way, it stops soon

	Outcome   *jury.TrialOutcome `json:"outcome"`           // what counts: the verdict and people's decisions on it; null: none yet
	Verdict   *Verdict           `json:"verdict"`           // the jury's; null: none yet
	Reviews   int                `json:"reviews"`           // people's reviews of records of the trial
	Reviewed  string             `json:"reviewed,omitzero"` // approval status of the last decision on the verdict
	Delivered bool               `json:"delivered"`
	Taken     *Taken             `json:"taken,omitzero"` // who means to decide on it; absent: no reviewer has taken it, or it does not wait for a person

	// Only in the answer for a single submission: the jury's result so far.
	Votes  *jury.Votes  `json:"votes,omitzero"`
	Result *jury.Result `json:"result,omitzero"`
}

// A Verdict summarises the jury's final judgment, without people's decisions on it.
type Verdict struct {
	Record       string        `json:"record"` // id of its record
	Position     jury.Position `json:"position"`
	Score        int           `json:"score"`
	Inconclusive bool          `json:"inconclusive"`
}

// Submissions are one page of a list, the newest first.
type Submissions struct {
	Submissions []Submission `json:"submissions"`
	Next        string       `json:"next,omitzero"` // cursor of the next page; "": this is the last one
}

// An Event is something that happened in a trial.
type Event struct {
	Type         string          `json:"type"`
	Seq          int64           `json:"seq"` // from 1, without gaps
	At           string          `json:"at"`  // RFC 3339
	SubmissionID string          `json:"submissionId"`
	JSON         json.RawMessage `json:"-"` // the whole event: docs/api.md says what each type has
}

// LastEvent is the type of the event that closes a trial. After it, only events of the type PersonDecided follow,
// whenever a person decides. A watcher gets those that exist at the end of the trial.
const LastEvent = "trial_closed"

// PersonDecided is the type of the event of a person's decision on a verdict.
const PersonDecided = "person_decided"
