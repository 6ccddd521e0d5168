// Package brief describes a record in a few bytes: what a list shows of it, and what the record is linked by. The
// ledger keeps a brief beside each record, so that lists and searches for linked records need not read payloads.
//
// A brief is made of the payload alone. The payload contains only commitments to fields that are sealed apart, so no
// brief contains a value that can be erased. Every part of a brief has a size limit, however large the payload is.
//
// # What a list shows, and what names what, is stored beside the payloads
//
// The transaction that appends a record also stores its brief, a JSON text of some 150 to 1,500 bytes: who acted how
// and when, under which request, and for an act in a trial what lists of trials show. Beside the brief it stores the
// digests that the record names, at most MaxNames. It also stores a key of 64 bits for each way in which the record
// is linked: its request_id, its parent_request_id, the record that it is about, and each digest that it names.
// SQLite indexes keys by stretches of the log, like digests. So lists read no payload, and hold a limited amount of
// each record. Linked records are found from any one of them, and log prove, pages, bundles and /v1/chains share one
// rule: Gather.
//
// No proof depends on briefs. Log fsck compares each brief
// with its record. A log that cannot be written is read without them. A brief is emptied when its record expires.
// Refused: columns of the table of records, because its rows never change; and names without a limit, because a
// payload can have a hundred thousand.
package brief

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/internal/court/subject"
	"jurat/internal/kit/fault"
	"jurat/internal/log/ledger/storage"
	"jurat/jury"
)

// MaxNames is how many records a brief names by digest at most. More reports that its record names others, which are
// in no list of links.
const MaxNames = 1024

const (
	maxAgent = 200 // characters of the name of an agent under trial
	maxFault = 300 // bytes of the error of an act that cannot be read
)

// A Brief describes a record. The first five members come from the record's row, the others are the stored line.
type Brief struct {
	Index    int64           `json:"-"`
	RecordID string          `json:"-"`
	Digest   evidence.Digest `json:"-"`
	ChainID  string          `json:"-"`
	Case     evidence.Digest `json:"-"` // of a submission

	Action    evidence.ActionType `json:"action,omitzero"` // "": the record has expired, and only its row is known
	Actor     string              `json:"actor,omitzero"`
	Timestamp string              `json:"at,omitzero"`
	RequestID string              `json:"request,omitzero"`
	Parent    string              `json:"parent,omitzero"`   // parent_request_id
	Original  string              `json:"original,omitzero"` // original_response_id

	Status evidence.ApprovalStatus `json:"status,omitzero"` // of a review
	Given  jury.Position           `json:"given,omitzero"`  // of a review of a verdict: the position that it gives instead
	Trial  *Act                    `json:"trial,omitzero"`  // of an act in a trial; nil: lists show nothing of it

	More  bool              `json:"more,omitzero"` // the record names more than MaxNames others
	Names []evidence.Digest `json:"-"`             // the records that it names by digest, each once; nil also if they were not read
}

// An Act is what a list shows of an act in a trial.
type Act struct {
	Agent   string        `json:"agent,omitzero"`   // of a submission: the name of the agent under trial
	Offline bool          `json:"offline,omitzero"` // of an opening: rules sit in all seats
	Missing bool          `json:"missing,omitzero"` // a juror gave no answer of its own
	Verdict *jury.Verdict `json:"verdict,omitzero"` // of a final judgment; its record is not repeated
	Fault   string        `json:"fault,omitzero"`   // why the act cannot be read
}

// Of makes the brief of a record. The caller sets Index.
func Of(p *evidence.Payload, digest evidence.Digest) *Brief {
	b := &Brief{RecordID: p.RecordID, Digest: digest, ChainID: p.ChainID, Action: p.ActionType, Actor: p.Actor(), Timestamp: p.Timestamp,
		RequestID: p.RequestID, Parent: p.ParentRequestID, Original: p.OriginalResponseID, Status: p.ApprovalStatus, Trial: actOf(p)}
	if p.ActionType == evidence.Submission {
		b.Case = p.Case
	}
	if p.ActionType == evidence.HumanReview {
		b.Given = jury.PositionGiven(&evidence.Record{Payload: *p}) // without disclosures: values that are sealed apart stay out
	}
	if !p.ActionType.InTrial() {
		b.name(p)
	}
	return b
}

// name collects the digests of the records that a record names. Acts of a trial are left out: they all name each
// other, and are found by their chain.
func (b *Brief) name(p *evidence.Payload) {
	seen := map[evidence.Digest]bool{{}: true}
	for i := -1; i < len(p.Saw); i++ {
		d := p.PreviousRecord
		if i >= 0 {
			d = p.Saw[i]
		}
		if seen[d] {
			continue
		}
		if len(b.Names) == MaxNames {
			b.More = true
			return
		}
		b.Names, seen[d] = append(b.Names, d), true
	}
}

// actOf returns what a list shows of an act in a trial, or nil if nothing.
func actOf(p *evidence.Payload) *Act {
	switch {
	case p.ActionType == evidence.Submission:
		name := []rune(subject.NameIn(p.Response))
		return shown(Act{Agent: string(name[:min(len(name), maxAgent)])})
	case !p.ActionType.InTrial():
		return nil
	case p.ActionType == evidence.Evaluation, p.ActionType == evidence.Statement, p.ActionType == evidence.JudgeOpinion:
		if !bytes.Contains(p.Response, []byte(`"fallback":true`)) { // an answer of its own; responses are canonical JSON
			return nil
		}
	}
	body, err := jury.DecodeBody(p.ActionType, p.Response)
	if err != nil {
		text := err.Error()
		return &Act{Fault: strings.ToValidUTF8(text[:min(len(text), maxFault)], "")}
	}
	_, _, missing := jury.Missing(body)
	act := Act{Missing: missing}
	switch body := body.(type) {
	case *jury.Opening:
		act.Offline = !slices.ContainsFunc(body.Settings.Seats, func(seat jury.Seat) bool { return seat.Provider != jury.Offline })
	case *jury.Judgment:
		act.Verdict = new(body.Summary())
	}
	return shown(act)
}

func shown(act Act) *Act {
	if act == (Act{}) {
		return nil
	}
	return &act
}

// Time is the claimed time, or the zero time if the record has none.
func (b *Brief) Time() time.Time {
	at, _ := evidence.ParseTime(b.Timestamp) // Timestamp is valid or empty since it was logged
	return at
}

// Review returns a record with the parts of a review that an evaluation of reviews reads. The caller must have read
// the names.
func (b *Brief) Review() *evidence.Record {
	p := evidence.Payload{RecordID: b.RecordID, ActionType: b.Action, ReviewerID: b.Actor, Timestamp: b.Timestamp, ChainID: b.ChainID,
		OriginalResponseID: b.Original, ApprovalStatus: b.Status, Saw: b.Names}
	if b.Given != "" {
		p.ModifiedResponse = jury.ModifiedVerdict(b.Given)
	}
	return &evidence.Record{Payload: p, Digest: b.Digest}
}

// Expired reports whether the record was deleted after its retention time.
func (b *Brief) Expired() bool { return b.Action == "" }

// Role is the role in which the record was signed.
func (b *Brief) Role() evidence.Role {
	role, _ := evidence.RoleOf(b.Action)
	return role
}

// Apart reports whether a record is in a chain that is complete in itself: a trial's, or one of the operator's.
func (b *Brief) Apart() bool {
	return strings.HasPrefix(b.ChainID, evidence.TrialPrefix) || b.Role() == evidence.RoleOperator
}

// Stored returns what a store keeps of a brief: the line that lists show, and apart from it the names, which lists do not
// need. It refuses text that is not valid UTF-8.
func (b *Brief) Stored() (storage.StoredBrief, error) {
	line, err := json.Marshal(b, json.Deterministic(true))
	if err != nil {
		return storage.StoredBrief{}, fmt.Errorf("encoding brief of record %s: %w", b.RecordID, err)
	}
	names := make([]byte, 0, len(b.Names)*len(evidence.Digest{}))
	for _, d := range b.Names {
		names = append(names, d[:]...)
	}
	return storage.StoredBrief{Index: b.Index, Line: line, Names: names, Keys: b.Keys()}, nil
}

// A Link is a way in which a record names another.
type Link byte

const (
	ByDigest  Link = 'd' // previous_record or saw
	ByID      Link = 'o' // original_response_id
	ByParent  Link = 'p' // parent_request_id
	ByRequest Link = 'q' // its own request_id
)

// Key is the index key of a link. It is short, so different links can have the same key: a caller who finds a record by it
// must check the link.
func Key(link Link, name string) int64 {
	sum := sha256.Sum256(append([]byte{byte(link)}, name...))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

// A tie is what one record names of another, or is named by.
type tie struct {
	by   Link
	name string
}

// own lists by what others name a record.
func (b *Brief) own() []tie {
	ties := []tie{{ByDigest, string(b.Digest[:])}, {ByID, b.RecordID}}
	if b.RequestID != "" {
		ties = append(ties, tie{ByParent, b.RequestID})
	}
	return ties
}

// others lists what a record names of others.
func (b *Brief) others() (ties []tie) {
	if b.Original != "" {
		ties = append(ties, tie{ByID, b.Original})
	}
	if b.Parent != "" {
		ties = append(ties, tie{ByParent, b.Parent})
	}
	for _, d := range b.Names {
		ties = append(ties, tie{ByDigest, string(d[:])})
	}
	return ties
}

// Keys are the keys by which a record is found, sorted and each once. It returns none for a record that is apart or
// expired, which is found by its chain alone.
func (b *Brief) Keys() []int64 {
	if b.Apart() || b.Expired() {
		return nil
	}
	var keys []int64
	if b.RequestID != "" {
		keys = append(keys, Key(ByRequest, b.RequestID))
	}
	for _, t := range b.others() {
		keys = append(keys, Key(t.by, t.name))
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// OfRow makes the brief of a complete row. For an expired record it contains what the row says. It returns
// storage.ErrDamaged, wrapped, if the row is not a record.
func OfRow(row *storage.Row) (*Brief, error) {
	b := &Brief{RecordID: row.RecordID, Digest: row.Digest, ChainID: row.ChainID, Case: row.Case}
	if row.Entry == nil {
		record, err := row.Record()
		if err != nil {
			return nil, err
		}
		b = Of(&record.Payload, record.Digest)
	}
	b.Index = row.Index
	return b, nil
}

// Read decodes a brief as a store keeps it. It returns nil if the brief is missing or not as Stored writes it: the caller
// then reads the record, and package fsck reports the brief.
func Read(s *storage.StoredBrief) *Brief {
	const width = len(evidence.Digest{})
	b := &Brief{Index: s.Index, RecordID: s.RecordID, Digest: s.Digest, ChainID: s.ChainID, Case: s.Case}
	if s.Line == nil || json.Unmarshal(s.Line, b, json.RejectUnknownMembers(true)) != nil || len(s.Names)%width != 0 || len(s.Names) > MaxNames*width {
		return nil
	}
	for name := range slices.Chunk(s.Names, width) {
		b.Names = append(b.Names, evidence.Digest(name))
	}
	return b
}

// briefs returns the briefs that a query selects, and the index of the last one, or -1 if there are none. If a brief
// is missing or cannot be read, it reads the record instead. If that fails, it returns the briefs before it with the
// error.
func (x *Index) briefs(ctx context.Context, q storage.BriefQuery) (list []*Brief, last int64, err error) {
	stored, err := x.store.Briefs(ctx, q)
	if err != nil {
		return nil, -1, err
	}
	last = -1
	for i := range stored {
		b := Read(&stored[i])
		if b == nil {
			rows, err := storage.ExactRows(ctx, x.store, stored[i].Index, 1)
			if err == nil {
				b, err = OfRow(&rows[0])
			}
			if err != nil {
				return list, last, err
			}
		}
		list, last = append(list, b), b.Index
	}
	return list, last, nil
}

// listPage is how many briefs are read at once.
const listPage = 256

// List iterates over the briefs of a chain, or of the log ("") in log order, from an index on. It skips expired records and
// does not read the names of records. It ends after an error.
func (x *Index) List(ctx context.Context, from int64, chain string) iter.Seq2[*Brief, error] {
	return func(yield func(*Brief, error) bool) {
		for b, err := range x.each(ctx, storage.BriefQuery{From: max(0, from), Chain: chain}) {
			if err != nil {
				yield(nil, fmt.Errorf("listing the log: %w", err))
				return
			}
			if !b.Expired() && !yield(b, nil) {
				return
			}
		}
	}
}

// each iterates over the briefs that a query selects from an index on, and reads a page at a time. It ends after an error.
func (x *Index) each(ctx context.Context, q storage.BriefQuery) iter.Seq2[*Brief, error] {
	return func(yield func(*Brief, error) bool) {
		for q.N = listPage; ; {
			page, last, err := x.briefs(ctx, q)
			for _, b := range page {
				if !yield(b, nil) {
					return
				}
			}
			if err != nil {
				yield(nil, err)
			}
			if err != nil || last < 0 {
				return
			}
			q.From = last + 1
		}
	}
}

// ByID returns the brief of a record. It returns storage.ErrNotFound or storage.ErrExpired, wrapped, if there is
// none.
func (x *Index) ByID(ctx context.Context, id string) (*Brief, error) {
	at, err := x.store.Places(ctx, storage.Lookup{RecordIDs: []string{id}, Most: 1})
	if err == nil && len(at) == 0 {
		err = storage.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("looking for record %s: %w", id, err)
	}
	b, err := x.first(ctx, storage.BriefQuery{At: at, Names: true})
	if errors.Is(err, storage.ErrNotFound) {
		err = fmt.Errorf("%w: row %d is missing", storage.ErrDamaged, at[0])
	}
	if err != nil {
		return nil, fmt.Errorf("reading record %s: %w", id, err)
	}
	return b, nil
}

// FirstOfChain returns the brief of the first record of a chain. It returns storage.ErrNotFound or
// storage.ErrExpired, wrapped, if there is none.
func (x *Index) FirstOfChain(ctx context.Context, chain string) (_ *Brief, err error) {
	defer fault.While(&err, "reading chain %q", chain)
	return x.first(ctx, storage.BriefQuery{Chain: chain, N: 1})
}

// first returns the first brief that a query selects.
func (x *Index) first(ctx context.Context, q storage.BriefQuery) (*Brief, error) {
	list, _, err := x.briefs(ctx, q)
	switch {
	case err != nil:
		return nil, err
	case len(list) == 0:
		return nil, storage.ErrNotFound
	case list[0].Expired():
		return nil, storage.ErrExpired
	}
	return list[0], nil
}

// InTrials returns, in log order, the next briefs from index from on of records in the chains of trials, and the
// index to continue from. It returns no briefs at the end of the log. If a record without a brief cannot be read,
// InTrials first returns the briefs before it, and the error at the next call.
func (x *Index) InTrials(ctx context.Context, from int64) (list []*Brief, next int64, err error) {
	for next = from; len(list) == 0; { // until there is a record that has not expired
		page, last, err := x.briefs(ctx, storage.BriefQuery{From: next, N: listPage, Trials: true, Names: true})
		if err != nil && len(page) == 0 {
			return nil, 0, fmt.Errorf("reading the records of trials: %w", err)
		}
		if last < 0 {
			break
		}
		list, next = slices.DeleteFunc(page, (*Brief).Expired), last+1
	}
	return list, next, nil
}

const (
	// rowPage is how many rows are read at once. Each can be as large as a record may be.
	rowPage = 4
	// briefPage is how many briefs one transaction stores when they are made of records that are in the log already.
	briefPage = 256
)

// An Index gives access to the briefs of one log. It is safe for concurrent use.
type Index struct {
	store Store
	fixed error // why the store cannot be written; nil: it can
}

// Store is what an Index needs of a store.
type Store interface {
	storage.Records
	storage.Briefs
}

// New returns the index of a log. If the store cannot be written, fixed says why.
func New(store Store, fixed error) *Index { return &Index{store: store, fixed: fixed} }

// Reindex makes all briefs again, but those of records that cannot be read. It returns an error if the store cannot be
// written.
func (x *Index) Reindex(ctx context.Context, progress func(done, total int64)) (err error) {
	if x.fixed != nil {
		return x.fixed
	}
	defer fault.While(&err, "making briefs of records")
	head, err := x.store.Head(ctx)
	if err != nil {
		return err
	}
	for at := int64(0); at < head.Size; {
		to := min(head.Size, at+briefPage)
		if err := x.page(ctx, storage.Range{From: at, To: to}); err != nil {
			return err
		}
		if at = to; progress != nil {
			progress(at, head.Size)
		}
	}
	return nil
}

func (x *Index) page(ctx context.Context, in storage.Range) error {
	var briefs []storage.StoredBrief
	for from := in.From; from < in.To; from += rowPage {
		rows, err := storage.ReadableRows(ctx, x.store, from, min(rowPage, in.To-from))
		if err != nil {
			return err
		}
		for i := range rows {
			b, err := OfRow(&rows[i])
			if err == nil {
				var stored storage.StoredBrief
				stored, err = b.Stored()
				briefs = append(briefs, stored)
			}
			if err != nil && !storage.Unreadable(err) {
				return err
			}
		}
	}
	return x.store.PutBriefs(ctx, in, briefs)
}

// Replaced returns how often briefs of old records were replaced, see storage.Briefs. Its errors are those of the store.
func (x *Index) Replaced(ctx context.Context) (int64, error) { return x.store.Replaced(ctx) }
