package verify

import (
	"errors"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/operator"
)

// LoggedRecord is what the rules need of a record of a log.
type LoggedRecord struct {
	Action evidence.ActionType
	Chain  string
	Digest evidence.Digest
	Actor  evidence.Digest // the tag of its actor
	Names  evidence.Digest // see Names
}

// Logged returns what the rules need of a record.
func Logged(r *evidence.Record) *LoggedRecord {
	p := &r.Payload
	return &LoggedRecord{Action: p.ActionType, Chain: p.ChainID, Digest: r.Digest, Actor: evidence.ActorTag(p.Role(), p.Actor()), Names: NamedActor(p)}
}

// NamedActor returns the tag of the actor that a payload's own text names: the agent on trial of a submission, the actor of a
// key that is revoked, or the agent whom reviews of an observed act judge. It returns zero if it names none, and for every
// other payload.
func NamedActor(p *evidence.Payload) evidence.Digest {
	if p.OnAgent() {
		return evidence.SubjectTag(evidence.RoleAgent, p.Observed.Agent)
	}
	switch p.ActionType {
	case evidence.Submission:
		if name := AgentOnTrial(p.Response); name != "" {
			return evidence.SubjectTag(evidence.RoleAgent, name)
		}
	case evidence.KeyEvent:
		body := object(p.Response)
		role, name := text(body["role"]), text(body["name"])
		if text(body["event"]) == string(operator.KeyRevoked) && role != "" && name != "" {
			return evidence.SubjectTag(evidence.Role(role), name)
		}
	}
	return evidence.Digest{}
}

// A Log finds records of a log that precede a record. Both methods return nil if the log has no such record there.
type LogLookup interface {
	// First returns the first record of a chain.
	First(chain string) (*LoggedRecord, error)
	// Named returns the record with this record id.
	Named(id string) (*LoggedRecord, error)
}

// ErrLogUnknown is for a Log that does not know whether the log has a record.
var ErrLogUnknown = errors.New("it is not known whether the log has this record")

// JudgedActor returns the tag of the actor that a record judges, or zero if it judges none that the log knows. names is what
// Names returns for the payload. It returns the errors of the Log.
func JudgedActor(p *evidence.Payload, names evidence.Digest, log LogLookup) (evidence.Digest, error) {
	switch p.ActionType {
	case evidence.KeyEvent:
		return names, nil
	case evidence.FinalJudgment:
		return onTrial(p.ChainID, log)
	case evidence.HumanReview:
		return reviewed(p, log)
	}
	return evidence.Digest{}, nil
}

func reviewed(p *evidence.Payload, log LogLookup) (evidence.Digest, error) {
	if isTrial(p.ChainID) {
		return onTrial(p.ChainID, log)
	}
	original, err := log.Named(p.OriginalResponseID)
	if err != nil || original == nil || !isAbout(p, original.Digest) {
		return evidence.Digest{}, err
	}
	if isTrial(original.Chain) {
		return onTrial(original.Chain, log)
	}
	if original.Action.Observes() && !original.Names.IsZero() {
		return original.Names, nil
	}
	return original.Actor, nil
}

// isAbout reports whether a review is about the record with this digest. A review without digests is bound by the id
// alone.
func isAbout(p *evidence.Payload, digest evidence.Digest) bool {
	return p.PreviousRecord.IsZero() && len(p.Saw) == 0 || p.PreviousRecord == digest || slices.Contains(p.Saw, digest)
}

func isTrial(chain string) bool { return strings.HasPrefix(chain, evidence.TrialPrefix) }

func onTrial(chain string, log LogLookup) (evidence.Digest, error) {
	first, err := log.First(chain)
	if err != nil || first == nil || first.Action != evidence.Submission {
		return evidence.Digest{}, err
	}
	return first.Names, nil
}

// AgentOnTrial returns the name of the agent on trial, from the response of the submission. It returns "" if the response
// names none, or is sealed apart.
func AgentOnTrial(response jsontext.Value) string {
	submitted := object(response)
	for _, exhibit := range array(submitted["records"]) {
		if name := AgentOf(object(exhibit)["payload"]); name != "" {
			return name
		}
	}
	return text(object(submitted["agentCard"])["name"])
}

// AgentOf returns the agent whose act a payload is: its actor, or the agent that a recorder saw. It returns "" if it is the act of no agent.
func AgentOf(payload jsontext.Value) string {
	members := object(payload)
	action := evidence.ActionType(text(members["action_type"]))
	role, known := evidence.RoleOf(action)
	switch {
	case known && role == evidence.RoleAgent:
		return text(members["agent_id"])
	case action.Observes():
		return text(object(members["observed"])["agent"])
	}
	return ""
}

// object returns the members of an object, and none of another value.
func object(v jsontext.Value) (members map[string]jsontext.Value) {
	if v.Kind() != '{' || json.Unmarshal(v, &members) != nil {
		return nil
	}
	return members
}

func array(v jsontext.Value) (items []jsontext.Value) {
	if v.Kind() != '[' || json.Unmarshal(v, &items) != nil {
		return nil
	}
	return items
}

func text(v jsontext.Value) (s string) {
	if v.Kind() != '"' || json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}
