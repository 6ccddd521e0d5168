package words

import (
	"jurat/evidence"
	"jurat/jury"
	"jurat/verify"
	"jurat/verify/trust"
)

// Terms are the names of everything in reports and records. Every page, report and statement uses them.
type Terms struct {
	Guarantees Guarantees
	Statuses   Statuses
	Kinds      Kinds
	Clocks     Clocks
	Actions    Actions
	Roles      Roles
	Vantages   Vantages
	Approvals  Approvals
	Positions  Positions
	Methods    Methods
	NotShown   NotShown
}

// A Guarantee is a guarantee's name, and the question that it answers.
type Guarantee struct{ Name, Asks string }

// Guarantees are the questions of a report.
type Guarantees struct {
	Content, Authentication, NonRepudiation, Configuration, Vantage, Time, Qualified, Property, Before, Order, Chain, HumanReview, GivenOn,
	Completeness, Simultaneity, Verdict, Envelope Guarantee
}

// Of returns the zero Guarantee for an unknown one.
func (g *Guarantees) Of(of verify.Guarantee) Guarantee {
	switch of {
	case verify.Content:
		return g.Content
	case verify.Authentication:
		return g.Authentication
	case verify.NonRepudiation:
		return g.NonRepudiation
	case verify.Configuration:
		return g.Configuration
	case verify.Vantage:
		return g.Vantage
	case verify.Time:
		return g.Time
	case verify.Qualified:
		return g.Qualified
	case verify.Property:
		return g.Property
	case verify.Before:
		return g.Before
	case verify.Order:
		return g.Order
	case verify.Chain:
		return g.Chain
	case verify.HumanReview:
		return g.HumanReview
	case verify.GivenOn:
		return g.GivenOn
	case verify.Completeness:
		return g.Completeness
	case verify.Simultaneity:
		return g.Simultaneity
	case verify.Verdict:
		return g.Verdict
	case verify.Envelope:
		return g.Envelope
	}
	return Guarantee{}
}

// Statuses are the answers.
type Statuses struct{ Proved, NotProved, Refuted string }

// Of returns "" for an unknown answer.
func (s *Statuses) Of(of verify.Status) string {
	switch of {
	case verify.Proved:
		return s.Proved
	case verify.NotProved:
		return s.NotProved
	case verify.Refuted:
		return s.Refuted
	}
	return ""
}

// Kinds are the kinds of verified files.
type Kinds struct {
	OneRecord, ManyRecords, Trial, SeveralFiles, OneCheckpoint string
}

// Of returns "" for an unknown kind.
func (k *Kinds) Of(of verify.Kind) string {
	switch of {
	case verify.OneRecord:
		return k.OneRecord
	case verify.ManyRecords:
		return k.ManyRecords
	case verify.Trial:
		return k.Trial
	case verify.SeveralFiles:
		return k.SeveralFiles
	case verify.OneCheckpoint:
		return k.OneCheckpoint
	}
	return ""
}

// Clocks say whose clock an authority uses.
type Clocks struct{ Independent, OperatorClock string }

// Of returns "" for an unknown clock.
func (c *Clocks) Of(of trust.Clock) string {
	switch of {
	case trust.Independent:
		return c.Independent
	case trust.OperatorClock:
		return c.OperatorClock
	}
	return ""
}

// Actions name the action types.
type Actions struct {
	ModelOutput, Recommendation, Proposal, Instruction, APICall, ToolPlan, Message, ChainStep, HumanReview, Delivery,
	Submission, PhaseOpening, Evaluation, Statement, Absence, ConsensusCheck, JudgeOpinion, FinalJudgment, TrialClosing,
	LateStamp, CheckpointStamp, KeyEvent, Erasure, AccessEvent, Refusal, TrialEvent, Expiry string
	ObservedCall, ObservedTool, ObservedMessage, ObservedSpan, RecorderEvent string
}

// Of returns "" for an unknown action.
func (a *Actions) Of(of evidence.ActionType) string {
	switch of {
	case evidence.ModelOutput:
		return a.ModelOutput
	case evidence.Recommendation:
		return a.Recommendation
	case evidence.Proposal:
		return a.Proposal
	case evidence.Instruction:
		return a.Instruction
	case evidence.APICall:
		return a.APICall
	case evidence.ToolPlan:
		return a.ToolPlan
	case evidence.Message:
		return a.Message
	case evidence.ChainStep:
		return a.ChainStep
	case evidence.HumanReview:
		return a.HumanReview
	case evidence.Delivery:
		return a.Delivery
	case evidence.Submission:
		return a.Submission
	case evidence.PhaseOpening:
		return a.PhaseOpening
	case evidence.Evaluation:
		return a.Evaluation
	case evidence.Statement:
		return a.Statement
	case evidence.Absence:
		return a.Absence
	case evidence.ConsensusCheck:
		return a.ConsensusCheck
	case evidence.JudgeOpinion:
		return a.JudgeOpinion
	case evidence.FinalJudgment:
		return a.FinalJudgment
	case evidence.TrialClosing:
		return a.TrialClosing
	case evidence.LateStamp:
		return a.LateStamp
	case evidence.CheckpointStamp:
		return a.CheckpointStamp
	case evidence.KeyEvent:
		return a.KeyEvent
	case evidence.Erasure:
		return a.Erasure
	case evidence.AccessEvent:
		return a.AccessEvent
	case evidence.Refusal:
		return a.Refusal
	case evidence.TrialEvent:
		return a.TrialEvent
	case evidence.Expiry:
		return a.Expiry
	case evidence.ObservedCall:
		return a.ObservedCall
	case evidence.ObservedTool:
		return a.ObservedTool
	case evidence.ObservedMessage:
		return a.ObservedMessage
	case evidence.ObservedSpan:
		return a.ObservedSpan
	case evidence.RecorderEvent:
		return a.RecorderEvent
	}
	return ""
}

// Roles name the roles of actors.
type Roles struct{ Agent, Reviewer, Submitter, Juror, Judge, Clerk, Operator, Recorder string }

// Of returns "" for an unknown role.
func (r *Roles) Of(of evidence.Role) string {
	switch of {
	case evidence.RoleAgent:
		return r.Agent
	case evidence.RoleReviewer:
		return r.Reviewer
	case evidence.RoleSubmitter:
		return r.Submitter
	case evidence.RoleJuror:
		return r.Juror
	case evidence.RoleJudge:
		return r.Judge
	case evidence.RoleClerk:
		return r.Clerk
	case evidence.RoleOperator:
		return r.Operator
	case evidence.RoleRecorder:
		return r.Recorder
	}
	return ""
}

// Vantages are sentences that say from where a {recorder} saw an act.
type Vantages struct{ Answered, Proxy, ProxyMITM, InProcess, Telemetry, Examiner Sentence }

// Of returns "" for an unknown vantage.
func (v *Vantages) Of(of evidence.Vantage) Sentence {
	switch of {
	case evidence.Proxy:
		return v.Proxy
	case evidence.ProxyMITM:
		return v.ProxyMITM
	case evidence.InProcess:
		return v.InProcess
	case evidence.Telemetry:
		return v.Telemetry
	case evidence.Examiner:
		return v.Examiner
	}
	return ""
}

// Approvals name a reviewer's decisions.
type Approvals struct{ Approved, ApprovedWithModifications, Rejected string }

// Of returns "" for an unknown decision.
func (a *Approvals) Of(of evidence.ApprovalStatus) string {
	switch of {
	case evidence.Approved:
		return a.Approved
	case evidence.ApprovedWithModifications:
		return a.ApprovedWithModifications
	case evidence.Rejected:
		return a.Rejected
	}
	return ""
}

// A Position is a position's name, and its name in statements: the sealed identifier and its meaning.
type Position struct{ Name, Sealed string }

// Positions name the possible judgments on an agent.
type Positions struct{ SafePass, NeedsReview, UnsafeFail Position }

// Of returns the zero Position for an unknown one.
func (p *Positions) Of(of jury.Position) Position {
	switch of {
	case jury.SafePass:
		return p.SafePass
	case jury.NeedsReview:
		return p.NeedsReview
	case jury.UnsafeFail:
		return p.UnsafeFail
	}
	return Position{}
}

// Methods describe how a jury decides: the identifier and its meaning.
type Methods struct{ MajorityVote, WeightedAverage, FinalJudge, Median, Calibrated string }

// Of returns "" for an unknown method.
func (m *Methods) Of(of jury.Method) string {
	switch of {
	case jury.MajorityVote:
		return m.MajorityVote
	case jury.WeightedAverage:
		return m.WeightedAverage
	case jury.FinalJudge:
		return m.FinalJudge
	case jury.Median:
		return m.Median
	case jury.Calibrated:
		return m.Calibrated
	}
	return ""
}

// NotShown says what even a pass does not prove. Reports use the English texts.
type NotShown struct{ Correct, Responsible, Safe, Last, CarriedOut string }

// Of returns the text for a report's English one; "" for an unknown text.
func (n *NotShown) Of(item string) string {
	switch e := &englishTerms.NotShown; item {
	case e.Correct:
		return n.Correct
	case e.Responsible:
		return n.Responsible
	case e.Safe:
		return n.Safe
	case e.Last:
		return n.Last
	case e.CarriedOut:
		return n.CarriedOut
	}
	return ""
}
