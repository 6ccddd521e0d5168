package jury

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
)

// Position is a juror's view of the agent under trial.
type Position string

const (
	SafePass    Position = "safe_pass"
	NeedsReview Position = "needs_review"
	UnsafeFail  Position = "unsafe_fail"
)

// Phase is a part of a trial.
type Phase string

const (
	Initial    Phase = "initial"    // phase 1: every juror alone
	Repetition Phase = "repetition" // between phase 1 and 2: disputed seats are asked once more, alone
	Discussion Phase = "discussion" // phase 2: rounds
	Judging    Phase = "judging"    // phase 3: the final judgment
)

// Method is how the final judgment is found.
type Method string

const (
	MajorityVote    Method = "majority_vote"
	WeightedAverage Method = "weighted_average"
	FinalJudge      Method = "final_judge"
	Median          Method = "median"     // the middle position, and the middle scores: one juror alone cannot move it
	Calibrated      Method = "calibrated" // votes weighted by each juror's measured reliability
)

// A Rubric is what jurors score: axes whose maxima sum to 100 points.
type Rubric []Axis

// An Axis is one line of a rubric.
type Axis struct {
	ID          string `json:"id"`
	Max         int    `json:"max"` // points, from 0
	Description string `json:"description"`
	Veto        int    `json:"veto,omitzero"` // a judgment with fewer points cannot be safe_pass; 0: no veto

	Levels []Level `json:"levels,omitempty"` // from the least points to Max; nil: any whole number of points
}

// A Level is one described step of an axis.
type Level struct {
	Points      int    `json:"points"`
	Description string `json:"description"`
}

// Scores are whole points per axis id.
type Scores map[string]int

// A Seat is one place on the panel, or the judge's.
type Seat struct {
	JurorID    string          `json:"jurorId"`
	RoleName   string          `json:"roleName,omitzero"`
	RoleFocus  string          `json:"roleFocus,omitzero"`
	Provider   string          `json:"provider"`   // "offline": rules, not a model
	Model      string          `json:"model"`      // as configured; the act says which model answered
	Parameters jsontext.Value  `json:"parameters"` // an object
	Template   evidence.Digest `json:"template"`   // of what turns a Request into a prompt, or of the rules
	Reading    Reading         `json:"reading,omitzero"`
	Ended      *Ended          `json:"ended,omitzero"` // nil: as far as the operator knows, the vendor still offers the model
}

// Ended says that a model's vendor had ended it when the trial began, by the operator's table.
type Ended struct {
	On        string `json:"on"`                 // the day
	Successor string `json:"successor,omitzero"` // as the vendor recommends it
}

// A Reading is the order in which a seat reads: it orders the task and the axes of its prompt. "": the usual order.
type Reading string

const (
	PolicyFirst Reading = "policy_first" // what the operator's rules demand, then what was done
	ActsFirst   Reading = "acts_first"   // what was done, then what was said and what it had to be
	ClaimsFirst Reading = "claims_first" // what the agent said, then whether it is so
)

// Settings are the settings of a trial. Each opening act contains them.
type Settings struct {
	Seats         []Seat  `json:"seats"`          // 2 to 12, in the order of speaking
	Judge         *Seat   `json:"judge,omitzero"` // required exactly when Method is FinalJudge
	Rubric        Rubric  `json:"rubric"`
	Collaborative bool    `json:"collaborative"` // false: phase 1, then phase 3
	MaxRounds     int     `json:"maxRounds"`     // 0 to 20 rounds of discussion
	Threshold     float64 `json:"threshold"`     // agreement level for consensus; above 1: never before a round
	Method        Method  `json:"method"`

	Tables     bool `json:"tables,omitzero"`     // seats that are models must fill in the tables of Work before they score
	JudgeReads bool `json:"judgeReads,omitzero"` // the judge also reads the case in phase 1, before it knows the jury's view
	Repeat     bool `json:"repeat,omitzero"`     // disputed seats that are models are asked twice before any discussion

	Weights        map[string]int `json:"weights,omitempty"`       // of each juror's vote, -1,000,000 to 1,000,000; required exactly when Method is Calibrated
	EffectiveVotes float64        `json:"effectiveVotes,omitzero"` // how many independent votes the panel is worth, as measured with the weights; 0: not measured

	Shortening  *Shortening `json:"shortening,omitzero"`  // how evidence that is too long is shortened; nil: it is shown whole
	CostCeiling int64       `json:"costCeiling,omitzero"` // maximum cost of all calls, in millionths of a US dollar; 0: no ceiling
}

// Shortening says how evidence that is too long is shortened, the same for every seat.
type Shortening struct {
	Rule  string `json:"rule"`  // names what is left out, and how that is marked
	Limit int    `json:"limit"` // bytes of evidence from which on it applies
}

// A Finding is one observation by a juror about the conversation.
type Finding struct {
	Message     int      `json:"message"` // number of the message, from 1
	Quote       string   `json:"quote"`   // must be in that message word for word
	Rule        string   `json:"rule"`    // the rule that was broken, e.g. "action-without-consent"
	Axis        string   `json:"axis"`    // the rubric axis that it affects
	Severity    Severity `json:"severity"`
	Explanation string   `json:"explanation"`
	From        string   `json:"from,omitzero"` // the juror from whom it was taken over

	Record    evidence.Digest `json:"record,omitzero"`    // the record that holds the message, if the evidence is records
	Unfounded bool            `json:"unfounded,omitzero"` // the message does not contain the quotation, so the finding counts for nothing
}

// A Passage is a quotation in a table of Work. It stands as a finding's quotation does.
type Passage struct {
	Message   int             `json:"message"` // number of the message, from 1
	Quote     string          `json:"quote"`   // must be in that message word for word
	Record    evidence.Digest `json:"record,omitzero"`
	Unfounded bool            `json:"unfounded,omitzero"` // the message does not contain the quotation
}

// Work are the tables that a model fills in before it scores.
type Work struct {
	Requests []WorkRequest `json:"requests"`
	Acts     []WorkAct     `json:"acts"`
	Amounts  []WorkAmount  `json:"amounts"`
}

type (
	// A WorkRequest is something that the user asked for, and what became of it.
	WorkRequest struct {
		Request Passage      `json:"request"`
		State   RequestState `json:"state"`
		Shown   *Passage     `json:"shown,omitzero"` // what shows the state
	}
	// A WorkAct is a call with consequences, held against the policy and the facts.
	WorkAct struct {
		Call   Passage  `json:"call"`
		Clause *Passage `json:"clause,omitzero"` // the clause of the policy that governs it
		Fact   *Passage `json:"fact,omitzero"`   // the facts on record that the clause depends on
		Holds  Answered `json:"holds"`           // whether the clause allows the call on these facts
	}
	// A WorkAmount compares what was announced with what was charged.
	WorkAmount struct {
		Announced *Passage `json:"announced,omitzero"`
		Charged   *Passage `json:"charged,omitzero"`
		Agrees    Answered `json:"agrees"`
	}
)

// A RequestState says what became of something that the user asked for.
type RequestState string

const (
	RequestDone     RequestState = "done"
	RequestPartly   RequestState = "partly"
	RequestNotDone  RequestState = "not_done"
	RequestDeclined RequestState = "declined"
	RequestOpen     RequestState = "open"
)

// Answered is the answer to a question of a table.
type Answered string

const (
	AnsweredYes Answered = "yes"
	AnsweredNo  Answered = "no"
	Unclear     Answered = "unclear"
)

// Severity is how serious a finding is.
type Severity string

const (
	Minor    Severity = "minor"
	Major    Severity = "major"
	Critical Severity = "critical"
)

// An Opinion is a complete judgement by one juror, or by the final judge.
type Opinion struct {
	Position   Position  `json:"position"`
	AxisScores Scores    `json:"axisScores"`
	TotalScore int       `json:"totalScore"` // sum of the axis scores, 0 to 100
	Confidence float64   `json:"confidence"` // 0 to 1, as the juror states it
	Rationale  string    `json:"rationale"`
	Findings   []Finding `json:"findings"`

	Levels map[string]int `json:"levels,omitempty"` // the chosen level of each axis that has levels, from 0; the scores follow from them
	Work   *Work          `json:"work,omitzero"`    // nil: the seat was not asked for it
}

// An Evaluation (JurorEvaluation) is an opinion in its place in the trial.
type Evaluation struct {
	JurorID     string `json:"jurorId"`
	Phase       Phase  `json:"phase"`
	RoundNumber int    `json:"roundNumber"` // 0 in phase 1
	RoleName    string `json:"roleName,omitzero"`
	RoleFocus   string `json:"roleFocus,omitzero"`
	Opinion            // inlined: position, axisScores, totalScore, confidence, rationale, findings
	Fallback    bool   `json:"fallback"` // a provider's filter blocked the juror; this is the neutral stand-in, not a vote
}

// A Speech is what a juror says in a round.
type Speech struct {
	Statement string   `json:"statement"`
	Position  Position `json:"position"`
	Reasoning string   `json:"reasoning"`
	Updated   *Opinion `json:"updatedEvaluation,omitzero"` // required when the position or any score changed
}

// A Statement (JurorStatement) is a speech in its place in the trial.
type Statement struct {
	JurorID           string      `json:"jurorId"`
	RoundNumber       int         `json:"roundNumber"`    // from 1
	StatementOrder    int         `json:"statementOrder"` // the seat, from 0
	Statement         string      `json:"statement"`
	Position          Position    `json:"position"`
	Reasoning         string      `json:"reasoning"`
	PositionChanged   bool        `json:"positionChanged"` // since this juror's last position
	UpdatedEvaluation *Evaluation `json:"updatedEvaluation"`
}

// An Absent (act "absence") says that a seat was asked and gave no valid answer.
type Absent struct {
	JurorID     string        `json:"jurorId"` // or the judge's seat
	Phase       Phase         `json:"phase"`
	RoundNumber int           `json:"roundNumber"`
	Reason      AbsenceReason `json:"reason"`
	Detail      string        `json:"detail"`
}

// AbsenceReason is why a seat is absent.
type AbsenceReason string

const (
	TimedOut AbsenceReason = "timed_out"
	Blocked  AbsenceReason = "blocked" // by a provider's safety filter
	Invalid  AbsenceReason = "invalid" // it answered, and the answer does not count
	Failed   AbsenceReason = "failed"  // it could not answer
	Ceiling  AbsenceReason = "ceiling" // it was not asked: the trial had reached its cost ceiling
)

// ConsensusStatus is how far the jury agrees.
type ConsensusStatus string

const (
	Unanimous ConsensusStatus = "unanimous"
	Majority  ConsensusStatus = "majority"
	Split     ConsensusStatus = "split"
)

// A ConsensusResult is the state of agreement after a phase or round.
type ConsensusResult struct {
	ConsensusStatus  ConsensusStatus `json:"consensusStatus"`
	AgreementLevel   float64         `json:"agreementLevel"` // k/n, two decimals
	ConsensusReached bool            `json:"consensusReached"`
	MajorityPosition *Position       `json:"majorityPosition"` // null on a split
}

// A Round (DiscussionRound) is one parallel round.
type Round struct {
	RoundNumber    int             `json:"roundNumber"`
	Statements     []Statement     `json:"statements"` // by seat; an absent juror has none
	ConsensusCheck ConsensusResult `json:"consensusCheck"`
	SpeakerOrder   []string        `json:"speakerOrder"`
}

// A Vote is one seat's last position and score, as the final judgment counted it.
type Vote struct {
	JurorID    string    `json:"jurorId"`
	Position   *Position `json:"position"` // null: the juror was absent
	TotalScore int       `json:"totalScore"`
	Confidence float64   `json:"confidence"`
	Fallback   bool      `json:"fallback"`
	Abstained  bool      `json:"abstained,omitzero"` // asked twice, the juror took two positions, and it has not spoken since
}

// A Judgment (FinalJudgment) ends a trial.
type Judgment struct {
	Method       Method   `json:"method"` // the applied one: majority_vote if the judge failed
	Model        string   `json:"model"`  // the judge's model that answered; "" if none did
	Position     Position `json:"position"`
	Score        int      `json:"score"`
	AxisScores   Scores   `json:"axisScores"`
	Rationale    string   `json:"rationale"`
	Votes        []Vote   `json:"votes"`            // by seat
	Vetoes       []string `json:"vetoes,omitempty"` // axes whose score forbade a safe_pass that the method gave
	Degraded     bool     `json:"degraded"`
	Inconclusive bool     `json:"inconclusive"` // fewer than two valid votes, or the cost ceiling was reached

	AfterTalk *AfterTalk     `json:"afterTalk,omitzero"` // calibrated: what the same weights give on the votes after the discussion; nil: there was none
	Review    []ReviewReason `json:"review,omitempty"`   // why a person must see this verdict
}

// AfterTalk is what a method that counts the votes before the discussion would give after it.
type AfterTalk struct {
	Position Position `json:"position"`
	Score    int      `json:"score"`
}

// A ReviewReason is why a person must see a verdict.
type ReviewReason string

const (
	TurnedByTalk ReviewReason = "turned_by_talk" // the same method on the votes before the discussion gives another position
	OneExtreme   ReviewReason = "one_extreme"    // one juror alone holds its position, and without it the method gives another
	JudgeMilder  ReviewReason = "judge_milder"   // the judge is milder than the jurors' majority, or than a juror that fails the agent on a quotation that stands
)

// A ModelOf says which model answered in a seat.
type ModelOf struct {
	JurorID  string `json:"jurorId"`
	Asked    string `json:"asked"`
	Answered string `json:"answered"`
}

// An EndedModel is a model that answered in a seat after its vendor had ended it.
type EndedModel struct {
	JurorID string `json:"jurorId"`
	Model   string `json:"model"`
	Ended
}

// A Result (CollaborativeJuryResult) is a whole trial.
type Result struct {
	Phase1Evaluations []Evaluation    `json:"phase1Evaluations"` // by seat; an absent juror has none
	Phase1Consensus   ConsensusResult `json:"phase1Consensus"`
	DiscussionRounds  []Round         `json:"discussionRounds"`
	TotalRounds       int             `json:"totalRounds"`
	Phase3Judgment    Judgment        `json:"phase3Judgment"`
	FinalVerdict      Position        `json:"finalVerdict"`
	FinalScore        int             `json:"finalScore"`       // 0 to 100
	EarlyTermination  bool            `json:"earlyTermination"` // fewer rounds were held than allowed
	Degraded          bool            `json:"degraded"`
	Inconclusive      bool            `json:"inconclusive"`
	Offline           bool            `json:"offline"` // the jurors were rules, not models
	Absences          []Absent        `json:"absences"`
	OtherModels       []ModelOf       `json:"otherModels,omitempty"` // seats in which another model answered than theirs
	EndedModels       []EndedModel    `json:"endedModels,omitempty"` // seats in which a model answered that its vendor had ended

	// What the discussion and the final judgment changed.
	Phase1Verdict     Position `json:"phase1Verdict"`     // the majority's after phase 1; needs_review on a tie
	DiscussionVerdict Position `json:"discussionVerdict"` // the majority's when the discussion was over
	Changes           []Change `json:"changes"`           // of position, by round and seat

	JudgeReading        *Opinion         `json:"judgeReading,omitzero"`        // the judge's own findings, before it knew the jury's view; nil: none
	Repeated            []Evaluation     `json:"repeated,omitempty"`           // what disputed seats answered when they were asked again
	RepetitionConsensus *ConsensusResult `json:"repetitionConsensus,omitzero"` // the check after that; nil: no juror was asked again
	Abstentions         []string         `json:"abstentions,omitempty"`        // jurors whose second answer took another position than the first
	Talk                *Talk            `json:"talk,omitzero"`                // what the discussion did; nil: there was none
	EffectiveVotes      *EffectiveVotes  `json:"effectiveVotes,omitzero"`      // nil: no juror has voted
	SameVendor          []string         `json:"sameVendor,omitempty"`         // jurors, and the judge, whose vendor also made the accused's model
}

// Talk is what the discussion did to the votes.
type Talk struct {
	Changes     int     `json:"changes"`     // of position
	ToMajority  int     `json:"toMajority"`  // of these, to the position that the majority held before
	Unsupported int     `json:"unsupported"` // of these, without a new finding that stands
	Conformity  float64 `json:"conformity"`  // share of the changes that went to the majority without a new finding that stands, two decimals
	Turned      bool    `json:"turned"`      // the same method on the votes before the discussion gives another position
}

// EffectiveVotes say how many independent votes the valid ones are worth.
type EffectiveVotes struct {
	Votes    float64 `json:"votes"`
	Measured bool    `json:"measured"` // from the errors that the jurors share; otherwise jurors of one model count as one
}

// A Change is a juror's change of position in a round, with its reasons.
type Change struct {
	JurorID     string    `json:"jurorId"`
	RoundNumber int       `json:"roundNumber"`
	From        Position  `json:"from"`
	To          Position  `json:"to"`
	Toward      []string  `json:"toward"`      // the jurors who held the new position before
	ToMajority  bool      `json:"toMajority"`  // the new position was the majority's before
	Cites       []Finding `json:"cites"`       // findings new to this juror that are in the evidence
	Unsupported bool      `json:"unsupported"` // it cites none
}

// Bodies of the clerk's acts.
type (
	// An Opening opens a phase or a round, before anyone is asked.
	Opening struct {
		Rules       string      `json:"rules"` // TrialRules: the rules by which the trial is conducted
		Phase       Phase       `json:"phase"`
		RoundNumber int         `json:"roundNumber"`
		Settings    Settings    `json:"settings"`
		Requests    []SeatAsked `json:"requests"` // who is asked, in seat order; empty if a method needs no judge
	}
	// SeatAsked announces one request.
	SeatAsked struct {
		JurorID       string          `json:"jurorId"`
		RequestDigest evidence.Digest `json:"requestDigest"`
	}
	// A Check is a consensus check. Saw lists the acts that it counted, by seat.
	Check struct {
		Phase          Phase           `json:"phase"`
		RoundNumber    int             `json:"roundNumber"`
		ConsensusCheck ConsensusResult `json:"consensusCheck"`
	}
	// A Closing ends the chain of a trial.
	Closing struct {
		Acts int `json:"acts"` // how many acts the trial has, from the submission to this one
	}
)

// TrialRules is the version of the rules of a trial: order, consensus, methods. A trial says which version applies.
const TrialRules = "jurat/trial/v3"

// RequestFormat is the version of what a seat is asked.
const RequestFormat = "jurat/request/v1"

// A Request is what a seat is asked, independent of the vendor: the seat, its criteria, and the digests of everything
// that it was shown. The opening announces the request's own digest, and the answer names it.
type Request struct {
	Format      string            `json:"format"`
	Phase       Phase             `json:"phase"`
	RoundNumber int               `json:"roundNumber"`
	Seat        Seat              `json:"seat"`
	Rubric      Rubric            `json:"rubric"`
	Evidence    evidence.Digest   `json:"evidence"`
	Shortening  *Shortening       `json:"shortening,omitzero"`
	Saw         []evidence.Digest `json:"saw"`             // submission, for the judge its own reading, evaluations by seat, statements by round and seat
	Tables      bool              `json:"tables,omitzero"` // the answer must have Work
}

// A Brief is a request with the contents behind its digests.
type Brief struct {
	Request
	Material    []byte       // the evidence: canonical JSON {agentCard, conversation}
	Evaluations []Evaluation // phase 1, by seat; nil in phase 1
	Repeated    []Evaluation // what disputed seats answered when they were asked again, by seat; nil before that
	Rounds      []Round      // the rounds before this one, with empty checks, because seats are not given checks
	Last        *Evaluation  // this seat's own current evaluation; nil if it has none (a stand-in is not its own)
	Own         *Opinion     // for the judge: its own reading in phase 1; nil if it has none
}

// An Origin says what made an answer, as its provider reported it.
type Origin struct {
	Model        string         // recorded as Unreported if it is ""
	ModelVersion string         // likewise
	Parameters   jsontext.Value // an object; nil: those of the seat
	Metadata     jsontext.Value // an object: how the answer came about, such as attempts and cost; nil: nothing. No rule depends on it
}

// An Answer is what a seat says, and what made it. The phase of the brief decides which member counts: Speech in a
// discussion, Opinion in phase 1 and for the final judgment. The other member is ignored.
type Answer struct {
	Opinion Opinion
	Speech  Speech
	Origin  Origin
}

// A Juror fills a seat of the panel, or the judge's. Its errors may be ErrBlocked, ErrInvalid, ErrCeiling, a
// deadline's, or anything else. All of them make it absent, with one exception: a neutral stand-in replaces a juror
// that was blocked before it had an evaluation. Of the Origin that comes with an error, only the Metadata is
// recorded; with a stand-in, all of it.
type Juror interface {
	Answer(context.Context, Brief) (Answer, error)
}

// An Act is one act of a trial, before it is sealed or after it was read.
type Act struct {
	Digest   evidence.Digest // of the sealed payload; zero before sealing
	Type     evidence.ActionType
	Actor    string            // juror or judge id; "" is the clerk
	Position int64             // in the chain: one more than the highest among Previous and Saw
	Previous evidence.Digest   // the act that this one follows
	Saw      []evidence.Digest // the acts that it was given
	Request  evidence.Digest   // the request that an answering act answers
	Origin   Origin            // what made the answer of an answering act
	Body     any               // *Opening, *Evaluation, *Statement, *Absent, *Check, *Opinion, *Judgment or *Closing
}

// A Clerk makes acts durable. It is safe for concurrent use.
type Clerk interface {
	// Record returns the digest by which later acts name this one. The act has happened when Record returns without
	// an error. If Record fails, the act has not happened, and the trial stops.
	Record(context.Context, Act) (evidence.Digest, error)
}

// Digest is the SHA-256 of the request in canonical JSON. An opening announces it, and the answer names it. Digest
// fails only for a seat or rubric that Settings.Validate refuses.
func (r Request) Digest() (evidence.Digest, error) {
	parameters, err := object(r.Seat.Parameters)
	if err != nil {
		return evidence.Digest{}, wrong("seat.parameters", "%v", err)
	}
	r.Seat.Parameters = parameters
	doc, err := EncodeBody(r)
	if err != nil {
		return evidence.Digest{}, fmt.Errorf("request of %s: %w", r.Seat.JurorID, err)
	}
	return evidence.DigestOf(doc), nil
}

// Request rebuilds what an opening says that a seat of its settings was asked, from the digest of the evidence and of the acts that the seat
// was given. Its digest must equal the announced one.
func (o *Opening) Request(seat Seat, material evidence.Digest, saw []evidence.Digest) Request {
	return clone(Request{Format: RequestFormat, Phase: o.Phase, RoundNumber: o.RoundNumber, Seat: seat, Rubric: o.Settings.Rubric, Evidence: material,
		Shortening: o.Settings.Shortening, Saw: saw, Tables: o.Settings.wantsTables(&seat, o.Phase)})
}

// wantsTables reports whether a seat must fill in tables in a phase: a model that reads the case for itself. A judge that
// was to read it in phase 1 need not do so again in phase 3.
func (s *Settings) wantsTables(seat *Seat, phase Phase) bool {
	return s.Tables && seat.Provider != Offline && phase != Discussion && !(phase == Judging && s.JudgeReads)
}

// Everyone lists the seats of the panel, and then the judge's, if there is one.
func (s *Settings) Everyone() []Seat {
	if s.Judge == nil {
		return s.Seats
	}
	return append(slices.Clone(s.Seats), *s.Judge)
}

// asked lists who may be asked in a phase, in seat order.
func (s *Settings) asked(phase Phase) []Seat {
	switch {
	case phase == Initial && s.JudgeReads:
		return s.Everyone()
	case phase != Judging:
		return s.Seats
	case s.Judge == nil:
		return nil
	}
	return []Seat{*s.Judge}
}

func (s *Settings) placesOf(seats []Seat) []int {
	places := make([]int, len(seats))
	for i, seat := range seats { // judgePlace is -1, which says that the panel has no such seat
		places[i] = slices.IndexFunc(s.Seats, func(other Seat) bool { return other.JurorID == seat.JurorID })
	}
	return places
}
