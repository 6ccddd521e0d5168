package verify

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/plural"
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

// wholeLog reads all entries that a checkpoint covers. They must have its root and the root of the file's checkpoint,
// and hold no more records of the file's chains than the file does. Entries with another root prove nothing about the
// log. wholeLog reports whether it found nothing wrong.
func (c *check) wholeLog(known operator.Checkpoint) bool {
	tree, count := new(operator.Frontier), newCensus(c.all, c.log.Size)
	fileRoot := tree.Root()                                             // at the size of the file's checkpoint
	entries := io.NewSectionReader(c.options.Entries, 0, math.MaxInt64) // from the beginning, even if it was read for an earlier file
	err := operator.ReadEntries(entries, func(index int64, line []byte, entry *evidence.Entry) error {
		if index == known.Size {
			return fmt.Errorf("%w: there are more than the %d that the checkpoint covers", operator.ErrEntries, known.Size)
		}
		tree.Add(tlog.RecordHash(line))
		if tree.Size() == c.log.Size {
			fileRoot = tree.Root()
		}
		count.Take(index, entry)
		return nil
	})
	switch {
	case err == nil && tree.Size() < known.Size:
		err = fmt.Errorf("%w: there are %d, and the checkpoint covers %d", operator.ErrEntries, tree.Size(), known.Size)
	case err == nil && tree.Root() != known.Root:
		err = fmt.Errorf("%w: their root is not that of the checkpoint of %d", operator.ErrEntries, known.Size)
	}
	switch {
	case errors.Is(err, operator.ErrEntries):
		c.doubt(c.ofLog(), "entries", nil, "%v; they may have been changed on the way, so this says nothing against the log: get them again ('jurat log checkpoint --entries')", err)
	case err != nil:
		c.doubt(c.ofLog(), "entries", nil, "%v", err)
	case known.Size >= c.log.Size && fileRoot != c.log.Root:
		c.fork("the first %d entries of the reader's log have another root than the file's checkpoint of %d", c.log.Size, c.log.Size)
	default:
		return count.Judge(c.all, c.refuting(c.ofLog())) && (c.kind == OneRecord || c.judgeCensus(count, known))
	}
	return false
}

// tags compares what the log counts of actors and subjects with the records of the file, unless their places are
// refuted.
func (c *check) tags() {
	if worst := c.worst(Order); c.log == nil || worst != nil && worst.Status == Refuted {
		return
	}
	followCounts(c.all, func(r *evidence.Record) evidence.Digest { return c.said[r].Names }, c.refuting(Order))
}

// refuting returns refute for one guarantee.
func (c *check) refuting(g Guarantee) refute {
	return func(rule string, r *evidence.Record, format string, args ...any) {
		c.refute(g, rule, r, format, args...)
	}
}

// judgeCensus adds the findings of a census. It reports whether nothing is missing or falsely counted.
func (c *check) judgeCensus(n *census, known operator.Checkpoint) bool {
	whole := true
	for _, chain := range n.Chains {
		whole = c.judgeChain(chain) && whole
	}
	submissions := ""
	for _, r := range c.all {
		if r.Payload.ActionType != evidence.Submission {
			continue
		}
		of := n.Cases[evidence.CaseTag(r.Payload.Case)]
		if of.Wrong != "" {
			c.refute(Completeness, "count", r, "the log counts %s: it counts the submissions of this case falsely", of.Wrong)
			whole = false
		}
		submissions = fmt.Sprintf("in %s the same evidence was submitted %s", theseEntries(known.Size), plural.Of(of.Entries, "time"))
	}
	switch {
	case !whole:
	case c.kind == OneCheckpoint:
		c.whole = plural.Or(known.Size, "the 1 entry is there", fmt.Sprintf("all %d entries are there", known.Size))
	case known.Size < c.log.Size || len(n.Chains) == 0:
		// Entries that the log added between the reader's checkpoint and the file's were not brought. Records outside
		// chains have no count that could show a gap.
	default:
		have := theseEntries(known.Size) + plural.Or(known.Size, " has", " have")
		c.whole = joined(fmt.Sprintf("the file has every record that %s of its %s", have, plural.Of(len(n.Chains), "chain")), submissions, n.About(c.all))
	}
	return whole
}

// judgeChain compares the file's records of one chain with the log's.
func (c *check) judgeChain(n *chainCount) bool {
	if n.Wrong != "" {
		c.refute(Completeness, "count", nil, "the log counts %s: it counts the records of chain %q falsely", n.Wrong, n.ID)
		return false
	}
	if n.Lacks > 0 {
		age := ""
		if n.Later == n.Lacks {
			age = fmt.Sprintf("; the log added them after the file's checkpoint of %d, so the file is older or was cut", c.log.Size)
		}
		c.refute(Completeness, "cut", nil, "the log has %d records of chain %q, the file has %d of them; missing chain_seq %s%s",
			n.Entries, n.ID, n.Entries-n.Lacks, strings.Join(n.Missing, ", "), age)
		return false
	}
	return true
}

func theseEntries(n int64) string {
	return plural.Or(n, "this ", "these ") + plural.Of(n, "entry")
}

// A Count counts a log's entries of the chains, cases, actors and subjects of some records.
type census struct {
	Chains   []*chainCount // in the order of the records
	Cases    map[evidence.Digest]*tagCount
	Actors   map[evidence.Digest]*tagCount
	Subjects map[evidence.Digest]*tagCount

	Since int64  // the index of the first entry that counts its actor; -1: none does
	Wrong string // where the log stopped counting actors; "": nowhere

	cut    int64 // the size of the file's checkpoint
	chains map[evidence.Digest]*chainCount
}

// A Chain compares the entries of a chain with the records of it in a file.
type chainCount struct {
	tagCount
	ID      string
	Missing []string // chain_seq of the first entries that the file lacks
	Lacks   int64    // how many entries the file lacks
	Later   int64    // how many of them the log added after the file's checkpoint

	here map[evidence.Digest]bool // payloads of the chain's records in the file
}

// A Tally is the number of entries with one tag.
type tagCount struct {
	Entries int64
	Wrong   string // where the log's count is wrong; "": nowhere
}

// maxMissing bounds how many missing records a Chain lists.
const maxMissing = 10

// newCensus returns a Count for the records of a file with a checkpoint of this size.
func newCensus(records []*evidence.Record, size int64) *census {
	n := &census{cut: size, chains: map[evidence.Digest]*chainCount{}, Cases: map[evidence.Digest]*tagCount{}, Actors: map[evidence.Digest]*tagCount{},
		Subjects: map[evidence.Digest]*tagCount{}, Since: -1}
	for _, r := range records {
		p := &r.Payload
		n.Actors[evidence.ActorTag(p.Role(), p.Actor())] = new(tagCount)
		if p.ActionType == evidence.Submission {
			n.Cases[evidence.CaseTag(p.Case)] = new(tagCount)
		}
		if r.Log != nil && r.Log.SubjectSeq > 0 {
			n.Subjects[r.Log.Subject] = new(tagCount)
		}
		if p.ChainID == "" {
			continue
		}
		tag := evidence.ChainTag(p.ChainID)
		if n.chains[tag] == nil {
			n.chains[tag] = &chainCount{ID: p.ChainID, here: map[evidence.Digest]bool{}}
			n.Chains = append(n.Chains, n.chains[tag])
		}
		n.chains[tag].here[r.Digest] = true
	}
	return n
}

// Take takes in the log's next entry.
func (n *census) Take(index int64, e *evidence.Entry) {
	if chain := n.chains[e.Chain]; chain != nil {
		chain.take(e, index >= n.cut)
	}
	if of := n.Cases[e.Case]; of != nil && e.CaseSeq > 0 {
		of.take(e.CaseSeq, "submission")
	}
	if of := n.Actors[e.Actor]; of != nil && e.ActorSeq > 0 {
		of.take(e.ActorSeq, "record")
	}
	if of := n.Subjects[e.Subject]; of != nil && e.SubjectSeq > 0 {
		of.take(e.SubjectSeq, "judgment")
	}
	switch {
	case e.ActorSeq > 0 && n.Since < 0:
		n.Since = index
	case e.ActorSeq == 0 && n.Since >= 0 && n.Wrong == "":
		n.Wrong = fmt.Sprintf("entry %d has no number of its actor, and entry %d before it has one", index, n.Since)
	}
}

func (t *tagCount) take(seq int64, thing string) {
	if t.Entries++; seq != t.Entries && t.Wrong == "" {
		t.Wrong = fmt.Sprintf("as %s %d the one that is number %d in it", thing, seq, t.Entries)
	}
}

func (n *chainCount) take(e *evidence.Entry, later bool) {
	n.tagCount.take(e.ChainSeq, "record")
	if n.here[e.Payload] {
		return
	}
	if n.Lacks++; len(n.Missing) < maxMissing {
		n.Missing = append(n.Missing, fmt.Sprint(e.ChainSeq))
	} else if len(n.Missing) == maxMissing {
		n.Missing = append(n.Missing, "…")
	}
	if later {
		n.Later++
	}
}

// About says how many judgments the entries have about the subject of the records' last judgment, and from which entry
// on the log counts them. It returns "" if no record is a final judgment with a subject.
func (n *census) About(records []*evidence.Record) (about string) {
	for _, r := range records {
		if r.Log == nil || r.Log.SubjectSeq == 0 || r.Payload.ActionType != evidence.FinalJudgment {
			continue
		}
		about = "the log has " + plural.Of(n.Subjects[r.Log.Subject].Entries, "judgment") + " about the same subject"
		if n.Since > 0 {
			about += fmt.Sprintf(" since entry %d, from which on it counts them", n.Since)
		}
	}
	return about
}

// Judge calls refute where the entries show that the log counts the actors or the subjects of these records falsely. It
// reports whether it found nothing. A nil record stands for all of them.
func (n *census) Judge(records []*evidence.Record, refute refute) bool {
	right := n.Wrong == ""
	if !right {
		refute("count", nil, "%s: a log that counts actors counts every record", n.Wrong)
	}
	for _, r := range records {
		if of := n.Actors[evidence.ActorTag(r.Payload.Role(), r.Payload.Actor())]; of.Wrong != "" {
			refute("count", r, "the log counts %s: it counts the records of this actor falsely", of.Wrong)
			of.Wrong, right = "", false // it is reported once
		}
		if r.Log == nil || r.Log.SubjectSeq == 0 {
			continue
		}
		if of := n.Subjects[r.Log.Subject]; of.Wrong != "" {
			refute("count", r, "the log counts %s: it counts the judgments about this subject falsely", of.Wrong)
			of.Wrong, right = "", false
		}
	}
	return right
}
