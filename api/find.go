package api

import (
	"jurat/evidence"
	"jurat/jury"
)

// A TrialList is one page of what a search for trials finds.
type TrialList struct {
	Trials []TrialLine `json:"trials"`
	Counts TrialCounts `json:"counts"`        // of all pages, of what the caller may read
	Next   string      `json:"next,omitzero"` // cursor of the next page; "": this is the last one
	Index  IndexState  `json:"index,omitzero"`
}

// A TrialLine is a trial in a list.
type TrialLine struct {
	ID           string        `json:"id"`
	State        State         `json:"state,omitzero"` // "": not known, where no server runs
	Agent        string        `json:"agent"`
	Submitter    string        `json:"submitter"`
	Submitted    string        `json:"submitted"`
	Last         string        `json:"last"`             // when the last act was
	Outcome      jury.Position `json:"outcome,omitzero"` // what counts, after people's decisions; absent: none yet
	By           jury.Decider  `json:"by,omitzero"`
	Reviewer     string        `json:"reviewer,omitzero"` // the last person who decided on it; absent: none did
	Verdict      jury.Position `json:"verdict,omitzero"`  // the jury's; absent: none yet
	Score        *int          `json:"score"`             // of 100; null: none yet
	NeedsPerson  bool          `json:"needsPerson"`
	Taken        *Taken        `json:"taken,omitzero"` // who means to decide on it; absent: no reviewer has taken it
	Degraded     bool          `json:"degraded"`
	Inconclusive bool          `json:"inconclusive"`
	Offline      bool          `json:"offline"` // the jurors are rules, not models
	Case         string        `json:"case"`    // digest of the evidence
}

// TrialCounts say how many trials a search finds.
type TrialCounts struct {
	Total       int            `json:"total"`
	AtMost      bool           `json:"atMost,omitzero"` // there may be fewer, as the text was not compared in each of so many trials
	Verdicts    map[string]int `json:"verdicts"`        // by the jury's verdict, and none
	Outcomes    map[string]int `json:"outcomes"`        // by what counts, and none
	NeedsPerson int            `json:"needsPerson"`
}

// An IndexState says what a search could not see.
type IndexState struct {
	Behind int64 `json:"behind,omitzero"` // records of the log that the index does not have yet
}

// A HitList is one page of what a search for records finds. It can be short or empty: as long as it has a cursor, there may be more.
type HitList struct {
	Hits  []Hit      `json:"hits"`
	Next  string     `json:"next,omitzero"` // cursor of the next page; "": this is the last one
	Index IndexState `json:"index,omitzero"`
}

// A Hit is a record that a search found: who said it, and when.
type Hit struct {
	Record string `json:"record"`
	Action string `json:"action"`
	Role   string `json:"role"`
	Actor  string `json:"actor"`
	Agent  string `json:"agent,omitzero"` // whose act a recorder saw; "": it is no act that a recorder saw
	Chain  string `json:"chain,omitzero"`

	Outcome *jury.TrialOutcome `json:"outcome,omitzero"` // of the trial that the record belongs to; absent: there is none, or it has none yet

	Claimed   string `json:"claimed"`            // the time that the actor claims
	Status    string `json:"status"`             // of who and when: proved, not proved, or refuted
	Proved    string `json:"proved,omitzero"`    // the record existed then, by an authority's word; "": not proved
	Authority string `json:"authority,omitzero"` // the authority
	Clock     string `json:"clock,omitzero"`     // whose clock the authority has
	Why       string `json:"why,omitzero"`       // why it is not proved that the actor said it then
	Place     string `json:"place,omitzero"`     // JSON pointer to the text in the payload; "": the search has no text
	Said      bool   `json:"said"`               // the actor said the text itself, and was not only given it
	Line      string `json:"line,omitzero"`      // the text, with what surrounds it
}

// A TrialSheet is a trial on one page: what came out, who scored what, and why.
type TrialSheet struct {
	TrialLine
	Method    jury.Method    `json:"method,omitzero"`    // the applied one; "": no judgment yet
	Rationale string         `json:"rationale,omitzero"` // of the judgment
	Decision  *jury.Decision `json:"decision"`           // the last person's; null: none
	Axes      []string       `json:"axes"`               // of the rubric, in its order
	Seats     []TrialSeat    `json:"seats"`
	Findings  []TrialFinding `json:"findings"`
	Cost      int64          `json:"costMicroUSD"` // of the recorded calls
	Calls     int            `json:"calls"`        // of models; 0: rules sat
	Took      int64          `json:"tookMillis"`   // from the first act to the last
	Broken    string         `json:"broken,omitzero"`
}

// A TrialSeat is a juror with its latest evaluation.
type TrialSeat struct {
	JurorID   string         `json:"jurorId"`
	Role      string         `json:"role"`
	Model     string         `json:"model"`
	Position  jury.Position  `json:"position,omitzero"` // absent: it has not answered
	Score     int            `json:"score"`
	Scores    map[string]int `json:"scores"` // by axis
	Reason    string         `json:"reason"`
	Fallback  bool           `json:"fallback"`  // a stand-in for a blocked answer
	Abstained bool           `json:"abstained"` // two answers of it contradicted each other
}

// A TrialFinding is a finding of one or several jurors.
type TrialFinding struct {
	Message  int           `json:"message"`
	Quote    string        `json:"quote"`
	Rule     string        `json:"rule"`
	Axis     string        `json:"axis"`
	Severity jury.Severity `json:"severity"`
	Jurors   []string      `json:"jurors"`
	Stands   bool          `json:"stands"` // the evidence has the quotation in this message
}

// A TrialComparison is two trials side by side.
type TrialComparison struct {
	A        TrialSheet     `json:"a"`
	B        TrialSheet     `json:"b"`
	SameCase bool           `json:"sameCase"` // both judged the same evidence
	Both     []TrialFinding `json:"both"`     // findings of both, as A has them: of the same case by message, rule and quotation, else by rule and axis
	OnlyA    []TrialFinding `json:"onlyA"`
	OnlyB    []TrialFinding `json:"onlyB"`
}

// An AgentHistory is how trials of an agent went, the newest first.
type AgentHistory struct {
	Trials    TrialList        `json:"trials"`
	Measured  int              `json:"measured"`     // how many of the newest finished trials the numbers below are of
	Cost      int64            `json:"costMicroUSD"` // of the jurors' recorded calls, in millionths of a US dollar
	Agreement *float64         `json:"agreement"`    // mean level of agreement of the jurors in phase 1, 0 to 1; null: not defined
	Kappa     *float64         `json:"kappa"`        // Fleiss' kappa in phase 1; null: not defined
	Changes   int              `json:"changes"`      // of position, in discussions
	Turned    int              `json:"changedByTalk"`
	Jurors    []HistoryOfJuror `json:"jurors"` // the judge's seat included
}

// A HistoryOfJuror is what a seat did in the measured trials.
type HistoryOfJuror struct {
	JurorID  string `json:"jurorId"`
	Asked    int    `json:"asked"`
	Answered int    `json:"answered"`
	Changes  int    `json:"changes"` // of position
	Cost     int64  `json:"costMicroUSD"`
}

// Recordings is one page of the chains in which recorders saw something, the one with the newest record first. It can be short or empty: as
// long as it has a cursor, there may be more.
type Recordings struct {
	Recordings []Recording `json:"recordings"`
	Next       string      `json:"next,omitzero"` // cursor of the next page; "": this is the last one
	Index      IndexState  `json:"index,omitzero"`
}

// A Recording is a chain in which recorders saw something. Each list of names has at most 20.
type Recording struct {
	Chain     string             `json:"chain"`
	Agents    []string           `json:"agents"`    // whose acts were seen
	Recorders []string           `json:"recorders"` // by whom
	Models    []string           `json:"models"`    // that answered, by the providers' word; otherwise that were asked
	Protocols []string           `json:"protocols"`
	Vantages  []evidence.Vantage `json:"vantages"` // from where it was seen

	First string `json:"first"` // when the first act began, by the recorder's clock
	Last  string `json:"last"`  // when the last act ended

	Acts   int64        `json:"acts"`            // that were seen
	Calls  int64        `json:"calls"`           // of models, among them
	Broken int64        `json:"broken"`          // acts that did not come to their end
	Lost   int64        `json:"lost"`            // of these, those during which the recorder died
	Missed int64        `json:"missed"`          // calls of these agents that passed without a record in this time, by the recorders' word
	Tokens *TokenCounts `json:"tokens,omitzero"` // absent: no provider reported any
	Trials []TrialLine  `json:"trials"`          // that judged records of the chain, the oldest first, as far as the caller may see them
}

// TokenCounts are sums of what providers reported.
type TokenCounts struct {
	Input  int64 `json:"input"`  // tokens read
	Output int64 `json:"output"` // tokens written
	Calls  int64 `json:"calls"`  // that reported counts
}
