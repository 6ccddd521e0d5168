package verify

import (
	"cmp"
	"slices"

	"jurat/evidence"
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
