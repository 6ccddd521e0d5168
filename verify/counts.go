package verify

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/operator"
)

// refute is called with the rule that a record breaks.
type refute func(rule string, r *evidence.Record, format string, args ...any)

// followCounts compares what a log counts of actors and subjects with the records of a file. The caller has found their places
// in one log, so the numbers are the log's own. names returns what Names returns for the whole payload of a record; the
// records may have lost their texts.
func followCounts(records []*evidence.Record, names func(*evidence.Record) evidence.Digest, refute refute) {
	k := &counting{names: names, refute: refute, first: map[string]*evidence.Record{}, byID: map[string]*evidence.Record{},
		actors: map[evidence.Digest]*evidence.Record{}, subjects: map[evidence.Digest]*evidence.Record{}}
	var placed []*evidence.Record
	for _, r := range records {
		k.byID[r.Payload.RecordID] = r
		if r.Log != nil {
			placed = append(placed, r)
		}
		if r.Log != nil && r.Log.ChainSeq == 1 {
			k.first[r.Payload.ChainID] = r
		}
	}
	slices.SortStableFunc(placed, func(a, b *evidence.Record) int { return cmp.Compare(a.Log.Index, b.Log.Index) })
	for _, r := range placed {
		k.take(r)
	}
}

// counting follows the log's counts through the records of a file.
type counting struct {
	names    func(*evidence.Record) evidence.Digest
	refute   refute
	first    map[string]*evidence.Record
	byID     map[string]*evidence.Record
	actors   map[evidence.Digest]*evidence.Record // the last record of each actor
	subjects map[evidence.Digest]*evidence.Record // the last judgment about each subject
	counted  *evidence.Record                     // the first record that has a number of its actor; nil: none yet
	before   *evidence.Record                     // the last one before it that has none; nil: none
}

func (k *counting) take(r *evidence.Record) {
	counts := &r.Log.LogCounts
	if counts.ActorSeq == 0 {
		if k.before = r; k.counted != nil {
			k.refute("count", r, "the log gives it no number of its actor, and record %s before it has one: a log that counts actors counts every record", k.counted.Payload.RecordID)
		}
		return
	}
	if k.counted == nil {
		k.counted = r
	}
	tag := evidence.ActorTag(r.Payload.Role(), r.Payload.Actor())
	k.number(r, k.actors[tag], func(c *evidence.LogCounts) int64 { return c.ActorSeq }, "record %d of its actor")
	k.actors[tag] = r
	if counts.SubjectSeq > 0 {
		k.number(r, k.subjects[counts.Subject], func(c *evidence.LogCounts) int64 { return c.SubjectSeq }, "judgment %d about its subject")
		k.subjects[counts.Subject] = r
	}
	k.subject(r)
}

// number refutes a number that cannot follow that of the record before it: the log counts each place at most once.
func (k *counting) number(r, last *evidence.Record, of func(*evidence.LogCounts) int64, what string) {
	from, seq := int64(-1), int64(0)
	if k.before != nil {
		from = k.before.Log.Index // the log counted nothing up to there
	}
	if last != nil {
		from, seq = last.Log.Index, of(&last.Log.LogCounts)
	}
	if n := of(&r.Log.LogCounts); n <= seq || n-seq > r.Log.Index-from {
		k.refute("count", r, "the log counts it as "+what+" at index %d, after number %d at index %d: it counts falsely", n, r.Log.Index, seq, from)
	}
}

// subject refutes a subject that is not the one that the file's records name.
func (k *counting) subject(r *evidence.Record) {
	want, err := JudgedActor(&r.Payload, k.names(r), fileLog{k, r})
	if err != nil || want == r.Log.Subject {
		return
	}
	switch {
	case want.IsZero():
		k.refute("subject", r, "the log counts it as a judgment about an actor, and the records here name none")
	case r.Log.Subject.IsZero():
		k.refute("subject", r, "the log does not count it as a judgment about the actor that the records here name")
	default:
		k.refute("subject", r, "the log counts it as a judgment about another actor than the records here name")
	}
}

// fileLog is what a file shows of the log before one of its records.
type fileLog struct {
	*counting
	until *evidence.Record
}

func (f fileLog) First(chain string) (*LoggedRecord, error) { return f.see(f.first[chain]) }
func (f fileLog) Named(id string) (*LoggedRecord, error)    { return f.see(f.byID[id]) }

func (f fileLog) see(r *evidence.Record) (*LoggedRecord, error) {
	if r == nil || r.Log == nil {
		return nil, ErrLogUnknown
	}
	if r.Log.Index >= f.until.Log.Index {
		return nil, nil
	}
	p := &r.Payload
	return &LoggedRecord{Action: p.ActionType, Chain: p.ChainID, Digest: r.Digest, Actor: evidence.ActorTag(p.Role(), p.Actor()), Names: f.names(r)}, nil
}

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
