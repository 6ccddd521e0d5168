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
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/kit/plural"
)

// LogState says which log a file was cut from, and how long the log was then. It comes from the file's verified
// checkpoint.
type LogState struct {
	Origin string `json:"origin"`
	Size   int64  `json:"size"`
}

// knowsLog reports whether the reader brought a checkpoint or entries of a log.
func (o *Options) knowsLog() bool { return o.Checkpoint != "" || o.Entries != nil }

// readersLog is the log that the file was cut from, and what the reader knows of it from elsewhere. The sender
// chose the file and its checkpoint. The reader chose the other log.
type readersLog struct {
	*file
	own     *operator.Checkpoint
	known   operator.Checkpoint // the reader's, or without one the file's own, with which entries alone are compared
	unknown error               // why there are not two checkpoints of one log
	proof   error               // of one history, where one is needed: why there is none
	entries bool                // the reader brings entries

	unread error     // why the entries are not those of the reader's checkpoint
	root   tlog.Hash // over those that the file's checkpoint covers
	counts *census   // of the entries
}

// knownLog compares the two logs.
func (c *check) knownLog() {
	if !c.options.knowsLog() {
		return
	}
	k := &readersLog{file: &c.file, own: c.log.Checkpoint, entries: c.options.Entries != nil}
	if k.known, k.unknown = c.readersCheckpoint(); k.unknown == nil {
		k.proof = errNoProof
		if proof := c.options.Consistency; proof != nil {
			k.proof = proof.Check(k.small(), k.large())
		}
	}
	if askOfLog(c, rulesOfReadersLog, nil, k) && (!k.entries || c.wholeLog(k)) {
		c.known = &k.known
	}
}

func (c *check) readersCheckpoint() (operator.Checkpoint, error) {
	switch own := c.log.Checkpoint; {
	case own == nil:
		return operator.Checkpoint{}, errors.New("the file has no valid checkpoint that shows which log it was cut from")
	case c.options.Checkpoint == "":
		return *own, nil
	}
	known, err := c.openCheckpoint(c.options.Checkpoint)
	switch {
	case err != nil:
		return known, fmt.Errorf("the reader's checkpoint: %w", err)
	case known.Origin != c.log.Origin:
		return known, fmt.Errorf("the reader's checkpoint is of the log %s, and the file is of the log %s", known.Origin, c.log.Origin)
	}
	return known, nil
}

// askOfLog asks rules about what the reader knows of the log, and reports whether they found nothing. A single record has no completeness.
func askOfLog[In any](c *check, table rules[In], r *evidence.Record, in In) bool {
	if c.kind == OneRecord {
		table = slices.Clone(table)
		for i := range table {
			table[i].of = onOrder
		}
	}
	return !ask(&c.findings, table, r, in)
}

// ofLog returns the guarantee that rests on what the reader knows of the log.
func (c *check) ofLog() Guarantee {
	if c.kind == OneRecord {
		return Order
	}
	return Completeness
}

func (k *readersLog) small() operator.Checkpoint {
	if k.known.Size > k.own.Size {
		return *k.own
	}
	return k.known
}

func (k *readersLog) large() operator.Checkpoint {
	if k.known.Size > k.own.Size {
		return k.known
	}
	return *k.own
}

// isForked: one key has signed two histories.
func (k *readersLog) isForked(a *asked) {
	switch small, large := k.small(), k.large(); {
	case small.Size == 0 && small.Root != operator.EmptyRoot():
		a.refute("the log %s has signed a checkpoint of 0 entries that is not that of an empty log", k.known.Origin)
	case small.Size == large.Size && small.Root != large.Root:
		a.refute("the log %s has signed two checkpoints of %d entries with different roots: it shows different readers different histories", k.known.Origin, k.known.Size)
	case small.Size != large.Size && small.Size > 0 && errors.Is(k.proof, operator.ErrFork):
		a.refute("the key of the log %s has signed two histories: %v", k.known.Origin, k.proof)
	}
}

// isUnconnected: nothing shows that the shorter of the two logs is the beginning of the longer one. Entries show it where they reach.
func (k *readersLog) isUnconnected(a *asked) {
	small, large := k.small(), k.large()
	if small.Size == large.Size || small.Size == 0 || k.proof == nil || k.entries && k.known.Size >= k.own.Size {
		return
	}
	a.doubt("the reader's checkpoint covers %s and the file's %d, and nothing shows that they are of one history: %v; this says nothing against the log: get the proof from %d to %d entries ('jurat log checkpoint --since'), or bring the log's entries",
		plural.Of(k.known.Size, "entry"), k.own.Size, k.proof, small.Size, large.Size)
}

var errNoProof = errors.New("there is no consistency proof")

// noteLog reports how far the reader's knowledge of the log reaches. Only entries prove completeness of a bundle: a
// checkpoint shows that the log has lost nothing, but not which of its entries belong to a chain.
func (c *check) noteLog() {
	switch {
	case c.known == nil:
	case c.kind == ManyRecords && c.whole == "":
		ask(&c.findings, rulesOfTail, nil, c.logsCompared())
	case c.kind == OneRecord:
		c.notes[Order] += "; " + c.logsCompared()
	default:
		c.notes[Completeness] = joined(c.notes[Completeness], c.whole, c.logsCompared())
	}
}

// logsCompared describes how the file's log relates to the reader's.
func (c *check) logsCompared() string {
	switch file, known := c.log.Size, c.known.Size; {
	case c.options.Checkpoint == "":
		return fmt.Sprintf("the entries are those of the file's own checkpoint of %d", file)
	case file < known:
		return fmt.Sprintf("the log has lost nothing, and the file was cut at %d of the %s that the reader's checkpoint covers", file, plural.Of(known, "entry"))
	case file > known:
		return fmt.Sprintf("the log has lost nothing of the %s that the reader's checkpoint covers, and had %d when the file was cut", plural.Of(known, "entry"), file)
	}
	return "the file was cut at the reader's own checkpoint of " + plural.Of(c.log.Size, "entry")
}

// joined puts semicolons between those parts that say something.
func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "; ")
}

// Checkpoint checks a checkpoint by itself: whether a log that the reader trusts signed it. With Options.Checkpoint
// or Options.Entries it also checks whether that log is the one that the reader knows, and has lost nothing of it.
func Checkpoint(signed string, o Options) *Report {
	c := newCheck(o, OneCheckpoint)
	c.begin(signed, nil)
	c.list = append(c.list, c.place.list...)
	if c.log.Checkpoint != nil {
		c.notes[Order] = fmt.Sprintf("the log %s has signed that it had %s", c.log.Origin, plural.Of(c.log.Size, "entry")) + c.log.witnesses
	}
	c.knownLog()
	c.noteLog()
	return c.report()
}

// maxCheckpoint bounds the size of a checkpoint: three lines, and room for the signatures of many witnesses.
const maxCheckpoint = 1 << 20

// checkpointIn returns a file as a signed note, and whether that is the text of a checkpoint followed by signatures, valid or not.
func checkpointIn(file []byte) (signed string, is bool) {
	if len(file) > maxCheckpoint {
		return "", false
	}
	signed = evidence.MendNote(string(file))
	n, err := note.Open([]byte(signed), nil)
	var unverified *note.UnverifiedNoteError
	if errors.As(err, &unverified) {
		n = unverified.Note
	}
	if n == nil {
		return "", false
	}
	_, err = operator.ParseCheckpoint(n.Text)
	return signed, err == nil
}

// tags compares what the log counts of actors and subjects with the records of the file, unless their places are
// refuted: the numbers are the log's own.
func (c *check) tags() {
	if worst := c.worst(Order); c.log.Checkpoint == nil || worst != nil && worst.Status == Refuted {
		return
	}
	k := &counting{file: &c.file, first: map[string]*evidence.Record{}, byID: map[string]*evidence.Record{}, before: counted{index: -1},
		actors: map[evidence.Digest]counted{}, subjects: map[evidence.Digest]counted{}}
	var placed []*evidence.Record
	for _, r := range c.all {
		k.byID[r.Payload.RecordID] = r
		if r.Log == nil {
			continue
		}
		placed = append(placed, r)
		if r.Log.ChainSeq == 1 {
			k.first[r.Payload.ChainID] = r
		}
	}
	slices.SortStableFunc(placed, func(a, b *evidence.Record) int { return cmp.Compare(a.Log.Index, b.Log.Index) })
	for _, r := range placed {
		k.at = r
		ask(&c.findings, rulesOfCounts, r, k)
		k.pass()
	}
}

// counting follows the log's counts through the records of a file. It is what the file shows of the log before the record that is at hand.
type counting struct {
	*file
	at       *evidence.Record
	first    map[string]*evidence.Record
	byID     map[string]*evidence.Record
	actors   map[evidence.Digest]counted // the last record of each actor
	subjects map[evidence.Digest]counted // the last judgment about each subject
	since    *evidence.Record            // the first record that has a number of its actor; nil: none yet
	before   counted                     // up to there the log counted nothing
}

// counted is where the log has counted something, and as which number.
type counted struct{ index, number int64 }

func (k *counting) actor() evidence.Digest {
	return evidence.ActorTag(k.at.Payload.Role(), k.at.Payload.Actor())
}

// pass leaves the record that is at hand behind.
func (k *counting) pass() {
	counts := k.at.Log.Counts()
	if counts.ActorSeq == 0 {
		k.before.index = k.at.Log.Index
		return
	}
	k.since = cmp.Or(k.since, k.at)
	k.actors[k.actor()] = counted{k.at.Log.Index, counts.ActorSeq}
	if counts.SubjectSeq > 0 {
		k.subjects[counts.Subject] = counted{k.at.Log.Index, counts.SubjectSeq}
	}
}

func (k *counting) isMiscounted(a *asked) {
	counts := k.at.Log.Counts()
	if counts.ActorSeq == 0 {
		if k.since != nil {
			a.refute("the log gives it no number of its actor, and record %s before it has one: a log that counts actors counts every record", recordName(k.since))
		}
		return
	}
	k.follows(a, k.actors, k.actor(), counts.ActorSeq, "record %d of its actor")
	if counts.SubjectSeq > 0 {
		k.follows(a, k.subjects, counts.Subject, counts.SubjectSeq, "judgment %d about its subject")
	}
}

// follows refutes a number that cannot follow that of the record before it: the log counts each place at most once.
func (k *counting) follows(a *asked, all map[evidence.Digest]counted, tag evidence.Digest, n int64, what string) {
	last, known := all[tag]
	if !known {
		last = k.before
	}
	a.refuteIf(n <= last.number || n-last.number > k.at.Log.Index-last.index,
		"the log counts it as "+what+" at index %d, after number %d at index %d: it counts falsely", n, k.at.Log.Index, last.number, last.index)
}

// isOfOtherSubject: its subject is not the one that the file's records name.
func (k *counting) isOfOtherSubject(a *asked) {
	want, err := JudgedActor(&k.at.Payload, k.said[k.at].Names, k)
	switch {
	case k.at.Log.ActorSeq == 0, err != nil, want == k.at.Log.Subject:
	case want.IsZero():
		a.refute("the log counts it as a judgment about an actor, and the records here name none")
	case k.at.Log.Subject.IsZero():
		a.refute("the log does not count it as a judgment about the actor that the records here name")
	default:
		a.refute("the log counts it as a judgment about another actor than the records here name")
	}
}

func (k *counting) First(chain string) (*LoggedRecord, error) { return k.see(k.first[chain]) }
func (k *counting) Named(id string) (*LoggedRecord, error)    { return k.see(k.byID[id]) }

func (k *counting) see(r *evidence.Record) (*LoggedRecord, error) {
	if r == nil || r.Log == nil {
		return nil, ErrLogUnknown
	}
	if r.Log.Index >= k.at.Log.Index {
		return nil, nil
	}
	return Logged(r, k.said[r].Names), nil // which was read once, and before the record lost its texts
}

// LoggedRecord is what the rules need of a record of a log.
type LoggedRecord struct {
	Action evidence.ActionType
	Chain  string
	Digest evidence.Digest
	Actor  evidence.Digest // the tag of its actor
	Names  evidence.Digest // see Names
}

// Logged returns what the rules need of a record. names is its NamedActor, for which a whole submission is read.
func Logged(r *evidence.Record, names evidence.Digest) *LoggedRecord {
	p := &r.Payload
	return &LoggedRecord{Action: p.ActionType, Chain: p.ChainID, Digest: r.Digest, Actor: evidence.ActorTag(p.Role(), p.Actor()), Names: names}
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

// decoded returns a value of a kind of JSON, and the zero value of another.
func decoded[T any](v jsontext.Value, kind jsontext.Kind) (value T) {
	if v.Kind() != kind || json.Unmarshal(v, &value) != nil {
		return *new(T)
	}
	return value
}

func object(v jsontext.Value) map[string]jsontext.Value {
	return decoded[map[string]jsontext.Value](v, '{')
}
func array(v jsontext.Value) []jsontext.Value { return decoded[[]jsontext.Value](v, '[') }
func text(v jsontext.Value) string            { return decoded[string](v, '"') }

// wholeLog reads all entries that a checkpoint covers. They must have its root and the root of the file's checkpoint,
// and hold no more records of the file's chains than the file does. Entries with another root prove nothing about the
// log. wholeLog reports whether it found nothing wrong.
func (c *check) wholeLog(k *readersLog) bool {
	tree := new(operator.Frontier)
	k.counts, k.root = newCensus(c.all, k.own.Size), tree.Root()
	entries := io.NewSectionReader(c.options.Entries, 0, math.MaxInt64) // from the beginning, even if it was read for an earlier file
	k.unread = operator.ReadEntries(entries, func(index int64, line []byte, entry *evidence.Entry) error {
		if index == k.known.Size {
			return fmt.Errorf("%w: there are more than the %d that the checkpoint covers", operator.ErrEntries, k.known.Size)
		}
		tree.Add(tlog.RecordHash(line))
		if tree.Size() == k.own.Size {
			k.root = tree.Root()
		}
		k.counts.Take(index, entry)
		return nil
	})
	switch {
	case k.unread != nil:
	case tree.Size() < k.known.Size:
		k.unread = fmt.Errorf("%w: there are %d, and the checkpoint covers %d", operator.ErrEntries, tree.Size(), k.known.Size)
	case tree.Root() != k.known.Root:
		k.unread = fmt.Errorf("%w: their root is not that of the checkpoint of %d", operator.ErrEntries, k.known.Size)
	}
	return askOfLog(c, rulesOfEntries, nil, k) && (c.kind == OneRecord || c.judgeCensus(k))
}

// judgeCensus adds the findings about chains and cases. It reports whether nothing is missing or falsely counted.
func (c *check) judgeCensus(k *readersLog) bool {
	n, whole, submissions := k.counts, true, ""
	for _, chain := range n.Chains {
		whole = askOfLog(c, rulesOfChainCount, nil, chain) && whole
	}
	for _, r := range c.all {
		if r.Payload.ActionType == evidence.Submission {
			of := n.Cases[evidence.CaseTag(r.Payload.Case)]
			whole = askOfLog(c, rulesOfCaseCount, r, of) && whole
			submissions = fmt.Sprintf("in %s the same evidence was submitted %s", theseEntries(k.known.Size), plural.Of(of.Entries, "time"))
		}
	}
	switch {
	case !whole:
	case c.kind == OneCheckpoint:
		c.whole = plural.Or(k.known.Size, "the 1 entry is there", fmt.Sprintf("all %d entries are there", k.known.Size))
	case k.known.Size < k.own.Size || len(n.Chains) == 0:
		// Entries that the log added between the reader's checkpoint and the file's were not brought. Records outside
		// chains have no count that could show a gap.
	default:
		have := theseEntries(k.known.Size) + plural.Or(k.known.Size, " has", " have")
		c.whole = joined(fmt.Sprintf("the file has every record that %s of its %s", have, plural.Of(len(n.Chains), "chain")), submissions, n.About(c.all))
	}
	return whole
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

	chains map[evidence.Digest]*chainCount
}

// A Chain compares the entries of a chain with the records of it in a file.
type chainCount struct {
	tagCount
	ID      string
	cut     int64    // the size of the file's checkpoint
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
	n := &census{chains: map[evidence.Digest]*chainCount{}, Cases: map[evidence.Digest]*tagCount{}, Actors: map[evidence.Digest]*tagCount{},
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
			n.chains[tag] = &chainCount{ID: p.ChainID, cut: size, here: map[evidence.Digest]bool{}}
			n.Chains = append(n.Chains, n.chains[tag])
		}
		n.chains[tag].here[r.Digest] = true
	}
	return n
}

// Take takes in the log's next entry.
func (n *census) Take(index int64, e *evidence.Entry) {
	if chain := n.chains[e.Chain]; chain != nil {
		chain.take(e, index)
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

func (n *chainCount) take(e *evidence.Entry, index int64) {
	n.tagCount.take(e.ChainSeq, "record")
	if n.here[e.Payload] {
		return
	}
	if n.Lacks++; len(n.Missing) < maxMissing {
		n.Missing = append(n.Missing, fmt.Sprint(e.ChainSeq))
	} else if len(n.Missing) == maxMissing {
		n.Missing = append(n.Missing, "…")
	}
	if index >= n.cut {
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

// isMiscounted finds where the entries show that the log counts the actors or the subjects of the file's records falsely.
func (k *readersLog) isMiscounted(a *asked) {
	n, told := k.counts, map[*tagCount]bool{} // each is reported once
	a.refuteIf(n.Wrong != "", "%s: a log that counts actors counts every record", n.Wrong)
	judge := func(r *evidence.Record, of *tagCount, what string) {
		a.about(r).refuteIf(of.Wrong != "" && !told[of], "the log counts %s: it counts the %s falsely", of.Wrong, what)
		told[of] = true
	}
	for _, r := range k.all {
		judge(r, n.Actors[evidence.ActorTag(r.Payload.Role(), r.Payload.Actor())], "records of this actor")
		if r.Log != nil && r.Log.SubjectSeq > 0 {
			judge(r, n.Subjects[r.Log.Subject], "judgments about this subject")
		}
	}
}
