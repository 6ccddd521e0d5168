package evidence

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence/jsonform"
)

// Schema is the version of the payload format that this package writes and reads.
const Schema = "jurat/evidence/v1"

// A Payload is the Agent Evidence Payload. All of it is signed. Its members and their names are those of the audit
// model. The action type says which of them an act must have, may have and must not have (see the table in
// docs/format.md).
//
// Members that hold a jsontext.Value hold any JSON of the kind that the table allows, exactly as it was given.
type Payload struct {
	Schema     string       `json:"schema,omitzero"`
	RecordID   string       `json:"record_id,omitzero"` // UUIDv7, unique in a log
	ActionType ActionType   `json:"action_type,omitzero"`
	Signers    []SignerInfo `json:"signers,omitzero"` // every signature that the record must have, in order

	AgentID      string         `json:"agent_id,omitzero"`
	ReviewerID   string         `json:"reviewer_id,omitzero"`
	RequestID    string         `json:"request_id,omitzero"`
	Timestamp    string         `json:"timestamp,omitzero"` // RFC 3339 in UTC; the actor's claim
	Model        string         `json:"model,omitzero"`
	ModelVersion string         `json:"model_version,omitzero"`
	Prompt       jsontext.Value `json:"prompt,omitzero"`
	Context      jsontext.Value `json:"context,omitzero"`
	Response     jsontext.Value `json:"response,omitzero"`
	Parameters   jsontext.Value `json:"parameters,omitzero"` // an object; may be empty
	ToolsUsed    jsontext.Value `json:"tools_used,omitzero"`
	Metadata     jsontext.Value `json:"metadata,omitzero"` // an object

	ChainID         string   `json:"chain_id,omitzero"`
	ChainPosition   int64    `json:"chain_position,omitzero"` // from 1
	PreviousAgent   string   `json:"previous_agent,omitzero"`
	NextAgent       string   `json:"next_agent,omitzero"`
	ParentRequestID string   `json:"parent_request_id,omitzero"`
	PreviousRecord  Digest   `json:"previous_record,omitzero"` // payload digest of the previous record
	Saw             []Digest `json:"saw,omitzero"`             // payload digests of the acts that this one was given

	Case          Digest `json:"case,omitzero"`           // of a trial: digest of the evidence that is judged
	RequestDigest Digest `json:"request_digest,omitzero"` // of a juror's act: digest of what it was asked

	OriginalResponseID string         `json:"original_response_id,omitzero"`
	ModifiedResponse   jsontext.Value `json:"modified_response,omitzero"`
	Changes            jsontext.Value `json:"changes,omitzero"`
	ApprovalStatus     ApprovalStatus `json:"approval_status,omitzero"`

	Observed     *Observed      `json:"observed,omitzero"`      // of a recorder's act: what it saw, and from where
	RequestBody  jsontext.Value `json:"request_body,omitzero"`  // the bytes of the request: see ParseBody
	ResponseBody jsontext.Value `json:"response_body,omitzero"` // the bytes of the response

	SealedApart []string   `json:"sealed_apart,omitzero"` // JSON pointers to members that hold a commitment, sorted
	Provable    []Provable `json:"provable,omitzero"`     // second commitments of some of these, sorted by pointer
}

// ApprovalStatus is a reviewer's decision.
type ApprovalStatus string

const (
	Approved                  ApprovalStatus = "approved"
	ApprovedWithModifications ApprovalStatus = "approved_with_modifications"
	Rejected                  ApprovalStatus = "rejected"
)

// FieldError names the member of a payload that is missing, forbidden or wrong.
type FieldError struct {
	Field  string // the member's name, or a JSON pointer into it
	Reason string
}

func (e *FieldError) Error() string { return fmt.Sprintf("field %s: %s", e.Field, e.Reason) }

func missing(field string, action ActionType) error {
	return &FieldError{Field: field, Reason: fmt.Sprintf("missing, and required for %s", action)}
}

// Actor returns the name of the actor.
func (p *Payload) Actor() string {
	if rules[p.ActionType].actor == "reviewer_id" {
		return p.ReviewerID
	}
	return p.AgentID
}

// Role returns the role of the keys that must sign.
func (p *Payload) Role() Role { return rules[p.ActionType].role }

// Time returns the time that the actor claims.
func (p *Payload) Time() time.Time {
	t, err := ParseTime(p.Timestamp)
	if err != nil {
		return time.Time{} // cannot happen: parsing refuses such a payload
	}
	return t
}

// maxTime is the length of a time with nanoseconds. Times are compared to the nanosecond.
const maxTime = len("2026-01-31T16:15:00.123456789Z")

// ParseTime reads a time in the form of payloads: RFC 3339 in UTC, written with Z. It refuses every other spelling.
func ParseTime(text string) (time.Time, error) {
	if !strings.HasSuffix(text, "Z") {
		return time.Time{}, fmt.Errorf("%q is not in UTC: want a time like 2026-01-31T16:15:00Z", Abbreviate(text))
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	// time.Parse also accepts hours of one digit, a comma instead of the point, and digits beyond nanoseconds, which
	// it drops.
	if err != nil || len(text) > maxTime || !strings.HasPrefix(text, t.Format(time.DateOnly+"T"+time.TimeOnly)) || strings.Contains(text, ",") {
		return time.Time{}, fmt.Errorf("%q is not an RFC 3339 time: want one like 2026-01-31T16:15:00Z", Abbreviate(text))
	}
	return t, nil
}

// members holds a payload by names and values as given, so that a struct cannot lose any. Every value is in canonical
// form.
type members map[string]jsontext.Value

// membersOf decodes an object that is in canonical form. The values share its memory.
func membersOf(object jsontext.Value) (members, error) {
	if object.Kind() != '{' {
		return nil, &SyntaxError{Reason: "want an object, found " + kindName(object)}
	}
	m := make(members, 16)
	dec := jsontext.NewDecoder(bytes.NewBuffer(object), jsontext.AllowDuplicateNames(true)) // none are left
	_, err := dec.ReadToken()
	for err == nil && dec.PeekKind() != '}' {
		err = m.readNext(dec, object)
	}
	if err != nil {
		return nil, jsonform.Refusal(err, dec.InputOffset())
	}
	return m, nil
}

func (m members) readNext(dec *jsontext.Decoder, object jsontext.Value) error {
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	name := token.String()
	value, err := dec.ReadValue()
	end := dec.InputOffset()
	m[name] = object[end-int64(len(value)) : end : end]
	return err
}

// size is the length of what canonical returns.
func (m members) size() int {
	size := len("{}") + max(0, len(m)-1)*len(",")
	for name, value := range m {
		size += len(name) + len(value) + len(`"":`)
	}
	return size
}

// canonical encodes the members. Their names are those of the format, which need no escapes and sort by byte.
func (m members) canonical() []byte {
	form := append(make([]byte, 0, m.size()), '{')
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if len(form) > 1 {
			form = append(form, ',')
		}
		form = append(form, '"')
		form = append(form, name...)
		form = append(form, '"', ':')
		form = append(form, m[name]...)
	}
	return append(form, '}')
}

// payload reads the members into a Payload, but for those that were read into it from other members before and are the same here, and checks it. Members in
// except may be missing. Of several errors it always returns the same one: that of the first name.
func (m members) payload(p Payload, read members, except ...string) (*Payload, error) {
	var first *FieldError
	for name, value := range m {
		if before := read[name]; len(before) == len(value) && len(value) > 0 && &before[0] == &value[0] {
			continue
		}
		if err := p.read(name, value); err != nil && (first == nil || name < first.Field) {
			first = &FieldError{Field: name, Reason: err.Error()}
		}
	}
	if first != nil {
		return nil, first
	}
	if err := p.check(m, except...); err != nil {
		return nil, err
	}
	return &p, nil
}

// check applies the rule of the payload's action type. Members in except may be missing.
func (p *Payload) check(m members, except ...string) error {
	r, ok := rules[p.ActionType]
	if !ok {
		return &FieldError{Field: "action_type", Reason: fmt.Sprintf("unknown value %q: expected one of %s", Abbreviate(string(p.ActionType)), list(ActionTypes()))}
	}
	for _, list := range [][]string{r.required, r.filled, always} {
		for _, name := range list {
			if _, there := m[name]; !there && !slices.Contains(except, name) {
				return missing(name, p.ActionType)
			}
		}
	}
	var strange []string
	for name := range m {
		if !r.allows(name) {
			strange = append(strange, name)
		}
	}
	if len(strange) > 0 {
		return &FieldError{Field: slices.Min(strange), Reason: fmt.Sprintf("not allowed in %s", p.ActionType)}
	}
	return p.checkRelations(m, r)
}

// checkRelations checks the rules between several members.
func (p *Payload) checkRelations(m members, r rule) error {
	if _, there := m["modified_response"]; !there && p.ApprovalStatus == ApprovedWithModifications {
		return missing("modified_response", "human_review with approved_with_modifications")
	}
	bodied := p.ActionType.InTrial() || p.ActionType.ByOperator() || p.ActionType == RecorderEvent
	if bodied && m["response"].Kind() != '{' && !slices.Contains(p.SealedApart, "/response") {
		return &FieldError{Field: "response", Reason: fmt.Sprintf("want an object in %s", p.ActionType)}
	}
	if strings.HasPrefix(p.ChainID, TrialPrefix) && !p.ActionType.InTrial() && p.ActionType != HumanReview && p.ActionType != Delivery {
		return &FieldError{Field: "chain_id", Reason: fmt.Sprintf("%q is the chain of a trial; %s cannot be part of it", Abbreviate(p.ChainID), p.ActionType)}
	}
	if strings.HasPrefix(p.ChainID, OperatorPrefix) && !p.ActionType.ByOperator() {
		return &FieldError{Field: "chain_id", Reason: fmt.Sprintf("%q is a chain of the operator's; %s cannot be part of it", Abbreviate(p.ChainID), p.ActionType)}
	}
	if m["tools_used"].Kind() == '"' && !slices.Contains(p.SealedApart, "/tools_used") {
		return &FieldError{Field: "tools_used", Reason: "want an array, found a string"}
	}
	if o := p.Observed; o != nil && (o.Vantage == Telemetry) != (p.ActionType == ObservedSpan) {
		reason := fmt.Sprintf("vantage: %q does not fit %s: telemetry is %s, and nothing else is", o.Vantage, p.ActionType, ObservedSpan)
		return &FieldError{Field: "observed", Reason: reason}
	} else if o != nil && (o.Side != "") != (p.ActionType == ObservedMessage) {
		return &FieldError{Field: "observed", Reason: fmt.Sprintf("side: %s has it, and no other act has: %s or %s", ObservedMessage, Asked, Answered)}
	}
	if err := checkApart(m, p.SealedApart, r); err != nil {
		return err
	}
	return p.checkProvable()
}

// ParsePayload reads a payload from a sealed record. It must be in canonical form and complete. Its errors are
// *SyntaxError and *FieldError.
func ParsePayload(canonical []byte) (*Payload, error) {
	form, err := Canonical(canonical)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(form, canonical) {
		at := jsonform.FirstDifference(form, canonical)
		return nil, &SyntaxError{Pointer: jsonform.PointerAt(canonical, at), Offset: at, Reason: "not in canonical form (RFC 8785)"}
	}
	m, err := membersOf(form)
	if err != nil {
		return nil, err
	}
	return m.payload(Payload{}, nil)
}

// readers store one member each. Its value must be of the kind that the format demands.
var readers = map[string]func(p *Payload, v jsontext.Value) error{
	"schema":        reader(func(p *Payload) *string { return &p.Schema }, readOneOf(Schema)),
	"record_id":     reader(func(p *Payload) *string { return &p.RecordID }, readChecked(CheckRecordID)),
	"action_type":   reader(func(p *Payload) *ActionType { return &p.ActionType }, readAction),
	"signers":       reader(func(p *Payload) *[]SignerInfo { return &p.Signers }, readSigners),
	"agent_id":      reader(func(p *Payload) *string { return &p.AgentID }, readName),
	"reviewer_id":   reader(func(p *Payload) *string { return &p.ReviewerID }, readName),
	"request_id":    reader(func(p *Payload) *string { return &p.RequestID }, readName),
	"timestamp":     reader(func(p *Payload) *string { return &p.Timestamp }, readChecked(checkTime)),
	"model":         reader(func(p *Payload) *string { return &p.Model }, readName),
	"model_version": reader(func(p *Payload) *string { return &p.ModelVersion }, readName),
	"prompt":        reader(func(p *Payload) *jsontext.Value { return &p.Prompt }, readContent),
	"context":       reader(func(p *Payload) *jsontext.Value { return &p.Context }, readContent),
	"response":      reader(func(p *Payload) *jsontext.Value { return &p.Response }, readContent),
	"parameters":    reader(func(p *Payload) *jsontext.Value { return &p.Parameters }, readKind("an object")),
	"tools_used":    reader(func(p *Payload) *jsontext.Value { return &p.ToolsUsed }, readKind("an array", "a string")), // a string is a commitment
	"metadata":      reader(func(p *Payload) *jsontext.Value { return &p.Metadata }, readKind("an object")),

	"chain_id":          reader(func(p *Payload) *string { return &p.ChainID }, readName),
	"chain_position":    reader(func(p *Payload) *int64 { return &p.ChainPosition }, readPosition),
	"previous_agent":    reader(func(p *Payload) *string { return &p.PreviousAgent }, readName),
	"next_agent":        reader(func(p *Payload) *string { return &p.NextAgent }, readName),
	"parent_request_id": reader(func(p *Payload) *string { return &p.ParentRequestID }, readName),
	"previous_record":   reader(func(p *Payload) *Digest { return &p.PreviousRecord }, readDigest),
	"saw":               reader(func(p *Payload) *[]Digest { return &p.Saw }, readDigests),
	"case":              reader(func(p *Payload) *Digest { return &p.Case }, readDigest),
	"request_digest":    reader(func(p *Payload) *Digest { return &p.RequestDigest }, readDigest),

	"original_response_id": reader(func(p *Payload) *string { return &p.OriginalResponseID }, readName),
	"modified_response":    reader(func(p *Payload) *jsontext.Value { return &p.ModifiedResponse }, readContent),
	"changes":              reader(func(p *Payload) *jsontext.Value { return &p.Changes }, readContent),
	"approval_status":      reader(func(p *Payload) *ApprovalStatus { return &p.ApprovalStatus }, readOneOf(Approved, ApprovedWithModifications, Rejected)),

	"sealed_apart":  reader(func(p *Payload) *[]string { return &p.SealedApart }, readList(text)),
	"provable":      reader(func(p *Payload) *[]Provable { return &p.Provable }, readProvable),
	"observed":      reader(func(p *Payload) **Observed { return &p.Observed }, readObserved),
	"request_body":  reader(func(p *Payload) *jsontext.Value { return &p.RequestBody }, readBody),
	"response_body": reader(func(p *Payload) *jsontext.Value { return &p.ResponseBody }, readBody),
}

func reader[T any](member func(*Payload) *T, read func(jsontext.Value) (T, error)) func(*Payload, jsontext.Value) error {
	return func(p *Payload, v jsontext.Value) (err error) {
		*member(p), err = read(v)
		return err
	}
}

func (p *Payload) read(name string, v jsontext.Value) error {
	if read := readers[name]; read != nil {
		return read(p, v)
	}
	return errors.New("unknown; a member of your own goes into metadata")
}

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

func (r rule) allows(member string) bool {
	for _, list := range [][]string{r.required, r.filled, r.optional, linking, always} {
		if slices.Contains(list, member) {
			return true
		}
	}
	return false
}
