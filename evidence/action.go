package evidence

import "slices"

// Role is what a key is for. A key has one role, and an action type belongs to one role. So an agent that writes a
// juror's, a clerk's or a reviewer's name into agent_id does not get that actor's signature.
type Role string

const (
	RoleAgent     Role = "agent"     // an agent whose output is recorded
	RoleReviewer  Role = "reviewer"  // a person who approves, modifies or rejects
	RoleSubmitter Role = "submitter" // a person who puts an agent before the jury
	RoleJuror     Role = "juror"
	RoleJudge     Role = "judge"
	RoleClerk     Role = "clerk"    // the program that conducts a trial
	RoleOperator  Role = "operator" // the operator of the installation, who records changes of keys, certificates, time stamps, texts, access and expired records
	RoleRecorder  Role = "recorder" // a program that records what it sees an agent do; it is not the agent
)

// Roles lists every role.
func Roles() []Role {
	return []Role{RoleAgent, RoleReviewer, RoleSubmitter, RoleJuror, RoleJudge, RoleClerk, RoleOperator, RoleRecorder}
}

// ActionType names the kind of act that a payload records.
type ActionType string

const (
	// Outputs of a model. A payload without an action type is a ModelOutput.
	ModelOutput    ActionType = "model_output"
	Recommendation ActionType = "recommendation"
	Proposal       ActionType = "proposal"
	Instruction    ActionType = "instruction"
	APICall        ActionType = "api_call"
	ToolPlan       ActionType = "tool_plan"
	Message        ActionType = "message"

	ChainStep   ActionType = "chain_step"   // one agent's step in a chain, without its model
	HumanReview ActionType = "human_review" // a person's decision on a record
	Delivery    ActionType = "delivery"     // the answer that was given in the end

	// Acts of a trial.
	Submission     ActionType = "submission"
	PhaseOpening   ActionType = "phase_opening"
	Evaluation     ActionType = "evaluation"
	Statement      ActionType = "statement"
	Absence        ActionType = "absence"
	ConsensusCheck ActionType = "consensus_check"
	JudgeOpinion   ActionType = "judge_opinion"
	FinalJudgment  ActionType = "final_judgment"
	TrialClosing   ActionType = "trial_closing"

	// Acts of the operator.
	LateStamp       ActionType = "late_stamp"       // records were time-stamped after they were sealed
	CheckpointStamp ActionType = "checkpoint_stamp" // an authority stamped a checkpoint of the log
	KeyEvent        ActionType = "key_event"        // a key was registered, rotated, retired or revoked
	Erasure         ActionType = "erasure"          // a text that was sealed apart was destroyed
	AccessEvent     ActionType = "access_event"     // a person, an agent or the public gained or lost access
	TrialEvent      ActionType = "trial_event"      // a person stopped a trial, let it go on, or a reviewer took it or gave it back
	Expiry          ActionType = "expiry"           // the content of old records was removed

	// Acts of a recorder.
	ObservedCall    ActionType = "observed_call"    // an agent called a model
	ObservedTool    ActionType = "observed_tool"    // an agent used a tool, by MCP
	ObservedMessage ActionType = "observed_message" // an agent sent or answered a message, by A2A
	ObservedSpan    ActionType = "observed_span"    // the agent's telemetry tells of an act
	RecorderEvent   ActionType = "recorder_event"   // the recorder began, ended, lives, was set otherwise, or missed something
)

// A rule says which actor and which members the payload of an action type has. Members in none of the lists are
// forbidden, except those that every payload may have.
type rule struct {
	role     Role
	actor    string   // the member that names the actor
	required []string // must be present
	optional []string // may be present
	filled   []string // required too, but the sealer fills them in if they are missing
	apart    []string // members that may be sealed apart
}

// Members that every sealed payload has, and that the sealer fills in.
var always = []string{"schema", "record_id", "action_type", "signers"}

// Members that any payload may have: they place the record among others.
var linking = []string{"chain_id", "chain_position", "previous_agent", "next_agent", "parent_request_id",
	"previous_record", "saw", "metadata", "sealed_apart", "provable"}

var modelRule = rule{
	role: RoleAgent, actor: "agent_id",
	required: []string{"agent_id", "request_id", "timestamp", "model", "model_version", "prompt", "response", "parameters"},
	optional: []string{"context", "tools_used"},
	apart:    []string{"prompt", "context", "response", "tools_used", "metadata"},
}

var clerkRule = rule{
	role: RoleClerk, actor: "agent_id",
	required: []string{"agent_id", "timestamp", "chain_id", "chain_position", "previous_record", "case", "response"},
}

var seatRule = rule{
	role: RoleJuror, actor: "agent_id",
	required: []string{"agent_id", "request_id", "timestamp", "model", "model_version", "parameters", "response",
		"chain_id", "chain_position", "previous_record", "saw", "case", "request_digest"},
}

var operatorRule = rule{role: RoleOperator, actor: "agent_id", required: []string{"agent_id", "timestamp", "response"}}

var judgeRule = rule{role: RoleJudge, actor: "agent_id", required: seatRule.required}

// observedRule has the members of a model's output, where they apply, beside what was seen.
var observedRule = rule{
	role: RoleRecorder, actor: "agent_id",
	required: []string{"agent_id", "request_id", "timestamp", "observed"},
	optional: []string{"model", "model_version", "prompt", "context", "response", "parameters", "tools_used", "request_body", "response_body"},
	apart:    []string{"prompt", "context", "response", "tools_used", "request_body", "response_body", "metadata"},
}

// rules is the table of docs/format.md, section "Action types".
var rules = map[ActionType]rule{
	ModelOutput: modelRule, Recommendation: modelRule, Proposal: modelRule, Instruction: modelRule,
	APICall: modelRule, ToolPlan: modelRule, Message: modelRule,
	ChainStep: {
		role: RoleAgent, actor: "agent_id",
		required: []string{"agent_id", "request_id", "response", "chain_position"},
		filled:   []string{"timestamp"},
		optional: []string{"model", "model_version", "prompt", "context", "parameters", "tools_used"},
		apart:    modelRule.apart,
	},
	HumanReview: {
		role: RoleReviewer, actor: "reviewer_id",
		required: []string{"reviewer_id", "timestamp", "original_response_id", "approval_status"},
		optional: []string{"request_id", "context", "modified_response", "changes", "case"},
		apart:    []string{"context", "modified_response", "changes", "metadata"},
	},
	Delivery: {
		role: RoleAgent, actor: "agent_id",
		required: []string{"agent_id", "response", "saw"},
		filled:   []string{"timestamp"},
		optional: []string{"request_id", "context", "original_response_id", "case"},
		apart:    []string{"context", "response", "metadata"},
	},
	Submission: {
		role: RoleSubmitter, actor: "agent_id",
		required: []string{"agent_id", "timestamp", "chain_id", "chain_position", "case", "response"},
		apart:    []string{"response"},
	},
	PhaseOpening: clerkRule, ConsensusCheck: clerkRule, Absence: clerkRule, FinalJudgment: clerkRule, TrialClosing: clerkRule,
	Evaluation: seatRule, Statement: seatRule, JudgeOpinion: judgeRule,
	LateStamp: operatorRule, CheckpointStamp: operatorRule, KeyEvent: operatorRule, Erasure: operatorRule,
	AccessEvent: operatorRule, TrialEvent: operatorRule, Expiry: operatorRule,
	ObservedCall: observedRule, ObservedTool: observedRule, ObservedMessage: observedRule, ObservedSpan: observedRule,
	RecorderEvent: {role: RoleRecorder, actor: "agent_id", required: []string{"agent_id", "timestamp", "response"}},
}

// RoleOf returns the role whose keys sign this type of act, and whether the type exists.
func RoleOf(action ActionType) (Role, bool) {
	r, ok := rules[action]
	return r.role, ok
}

// ActionTypes lists every action type in alphabetical order.
func ActionTypes() []ActionType {
	types := make([]ActionType, 0, len(rules))
	for action := range rules {
		types = append(types, action)
	}
	slices.Sort(types)
	return types
}

// InTrial reports whether acts of this type are part of a trial.
func (a ActionType) InTrial() bool {
	role, _ := RoleOf(a)
	return role == RoleSubmitter || role == RoleClerk || role == RoleJuror || role == RoleJudge
}

// ByOperator reports whether acts of this type record what the operator did to the installation.
func (a ActionType) ByOperator() bool {
	role, _ := RoleOf(a)
	return role == RoleOperator
}

// OperatorPrefix begins the chain_id of chains that only the operator's acts may use.
const OperatorPrefix = "operator-"

// TrialPrefix begins the chain_id of every trial, and of no other chain. A trial's chain holds the acts of the trial,
// and the reviews and deliveries that follow.
const TrialPrefix = "trial-"

// inTrialChain reports whether acts of this type may be in a trial's chain.
func (a ActionType) inTrialChain() bool { return a.InTrial() || a == HumanReview || a == Delivery }

func (r rule) allows(member string) bool {
	for _, list := range [][]string{r.required, r.filled, r.optional, linking, always} {
		if slices.Contains(list, member) {
			return true
		}
	}
	return false
}
