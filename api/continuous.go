package api

import "jurat/evidence"

// ContinuousTrial is what a server tries without being asked, and whom it tells of thresholds and of cases that need a person.
type ContinuousTrial struct {
	On         bool             `json:"on"`      // false: the server tries nothing unasked, and the rest is empty
	Drawn      int64            `json:"drawn"`   // each witness's draw takes one of so many records; 0: none
	Sampled    int64            `json:"sampled"` // the installation takes one of so many; 0: none
	TrialsADay int              `json:"trialsADay"`
	Trials     int              `json:"trials"`           // that began within 24 hours
	MicroADay  int64            `json:"microDollarsADay"` // the limit on cost, in millionths of a US dollar; 0: none
	Micro      int64            `json:"microDollars"`     // what these trials have cost; those that are not over count with the most that they may cost
	Owed       int              `json:"owed"`             // records that are to be tried and were not
	Debts      []TrialDebt      `json:"debts"`            // the oldest of them
	Missing    []MissingDraws   `json:"missing"`          // draws without which it is not known which records are to be tried
	Thresholds []ThresholdState `json:"thresholds"`
	Webhooks   []WebhookState   `json:"webhooks"`
	Faults     []string         `json:"faults"` // what fails at present
}

// TrialDebt is a record that is to be tried.
type TrialDebt struct {
	Record    evidence.Digest `json:"record"`
	Index     int64           `json:"index"`          // in the log
	Agent     string          `json:"agent,omitzero"` // "": not known yet
	Trial     string          `json:"trial"`          // the id that its trial has, or will have
	Begun     bool            `json:"begun,omitzero"` // the trial has begun
	Witnesses []string        `json:"witnesses"`      // who drew it; none: the installation sampled it
	Why       string          `json:"why,omitzero"`   // why it cannot be tried
}

// MissingDraws says how many blocks of 64 records a witness has not drawn.
type MissingDraws struct {
	Witness string `json:"witness"`
	Blocks  int64  `json:"blocks"`
}

// ThresholdState says where an agent's reputation is, seen from a threshold. All numbers are parts of ten thousand.
type ThresholdState struct {
	Agent     string          `json:"agent"`
	Class     string          `json:"class,omitzero"` // whose verdicts: "models", "people" or "rules"; "": none has given bounds yet
	Panel     evidence.Digest `json:"panel,omitzero"`
	Threshold int64           `json:"threshold"`
	Side      string          `json:"side"`           // "none", "below", "across" or "above"
	Lower     *int64          `json:"lower,omitzero"` // nil: there are no bounds, or judgments are not proved to be in the log yet, and the side is the last that the log has
	Upper     *int64          `json:"upper,omitzero"`
	Since     string          `json:"since,omitzero"`
	RecordID  string          `json:"recordId,omitzero"` // of the act that reports the last crossing
	Fault     string          `json:"fault,omitzero"`    // why the reputation is not known at present
}

// WebhookState says whether a webhook was told everything.
type WebhookState struct {
	ID      string `json:"id"`
	Waiting int    `json:"waiting"`        // messages that it is still to get
	Fault   string `json:"fault,omitzero"` // why it did not take the last message
}
