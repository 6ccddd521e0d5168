package erasure

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/kit/fault"
	"jurat/internal/log/filestore"
	"jurat/internal/log/ledger"
)

// An Order says what to destroy, and why.
type Order struct {
	RecordID      string
	Pointers      []string // of members that are sealed apart
	Reason, By    string   // as the act says it, for every reader of the log
	DespiteQuotes bool     // erase even if the text also stands elsewhere
	Progress      func(done, total int64)
}

// Erased is the result of an order.
type Erased struct {
	Act      string            // the record id of the act; "": nothing was left to erase
	Now      []string          // the pointers that this order destroyed
	Before   map[string]string // the pointers that were destroyed before, and the act that says so; "": this call finished an interrupted erasure
	TooShort []string          // the pointers of texts that are too short to search for
	Quotes   []Quote           // the places where the text also stands, and stays
}

// QuotedError says that a text also stands elsewhere, so erasing it here does not remove it.
type QuotedError struct{ Quotes []Quote }

func (e *QuotedError) Error() string {
	return fmt.Sprintf("the text also stands in other places, which the erasure does not reach: %d", len(e.Quotes))
}

// Erase destroys values of a record that are sealed apart, for ever. The record stays, and so does every proof about it.
//
// The steps are: write the intent; seal the act; destroy the keys; destroy the values; remove the intent. A crash before the act leaves an intent
// without an act: nothing was erased, and Erase continues it. After the act, Finish or Erase continues it.
//
// The errors include ErrNone, ErrElsewhere, *QuotedError, *evidence.FieldError and those of the ledger. With a
// *QuotedError the result names the quotes.
func (k *Keeper) Erase(ctx context.Context, o Order) (_ *Erased, err error) {
	defer fault.While(&err, "erasing of record %s", o.RecordID)
	if strings.TrimSpace(o.Reason) == "" || strings.TrimSpace(o.By) == "" {
		return nil, errors.New("an erasure needs a reason and the name of the person who decided it")
	}
	record, err := k.Operator.Ledger.Record(ctx, o.RecordID)
	if err != nil {
		return nil, err
	}
	pointers := slices.Compact(slices.Sorted(slices.Values(o.Pointers)))
	if err := erasable(record, pointers); err != nil {
		return nil, err
	}
	if err := k.Operator.Ledger.CanAppend(ctx); err != nil {
		return nil, err
	}
	done := &Erased{Before: map[string]string{}}
	if err := k.resume(ctx, record, done); err != nil { // an interrupted erasure is finished first
		return nil, err
	}
	search := k.newSearch(record, pointers)
	if err := search.values(ctx, done); err != nil {
		return nil, err
	}
	if search.holds(o.Reason) || search.holds(o.By) {
		return nil, errors.New("the reason contains the text itself, and the log keeps the reason for ever")
	}
	end, err := search.log(ctx, 0, o.Progress)
	if err != nil {
		return nil, err
	}
	if done.Quotes = search.quotes; len(done.Quotes) > 0 && !o.DespiteQuotes {
		return done, &QuotedError{Quotes: done.Quotes}
	}
	return done, k.carryOut(ctx, o, record, pointers, search, end, done)
}

// erasable returns an error for pointers that an erasure cannot reach.
func erasable(r *evidence.Record, pointers []string) error {
	if len(pointers) == 0 {
		return errors.New("no field is named")
	}
	for _, pointer := range pointers {
		apart, err := r.IsApart(pointer)
		if err != nil {
			return err
		}
		if !apart {
			return &evidence.FieldError{Field: pointer, Reason: "there is no such member"}
		}
	}
	return nil
}

// carryOut erases the members that are not erased yet.
func (k *Keeper) carryOut(ctx context.Context, o Order, record *evidence.Record, pointers []string, search *search, end int64, done *Erased) error {
	left := slices.DeleteFunc(slices.Clone(pointers), func(p string) bool { return search.erased[p] != "" })
	if len(left) > 0 {
		id, err := evidence.NewRecordID(k.Now(), nil)
		if err != nil {
			return err
		}
		in := intent{Act: id, Timestamp: evidence.FormatTime(k.Now()),
			ErasureBody: operator.ErasureBody{By: o.By, Pointers: left, Reason: o.Reason, Record: record.Digest}}
		if err := k.begin(ctx, in); err != nil {
			return err
		}
		missing := k.allKept(ctx, record, left)
		// A process that finished an erasure since the search has added an act after the search's end, before it destroyed anything.
		if _, err := search.log(ctx, end, nil); err != nil {
			return k.drop(ctx, in, err)
		}
		if slices.ContainsFunc(left, func(p string) bool { return search.erased[p] != "" }) {
			return k.drop(ctx, in, errors.New("another process has erased from this record at the same time: try again"))
		}
		if done.Quotes = search.quotes; len(done.Quotes) > 0 && !o.DespiteQuotes {
			return k.drop(ctx, in, &QuotedError{Quotes: done.Quotes})
		}
		if missing != nil {
			return k.drop(ctx, in, missing)
		}
		err = k.seal(ctx, in)
		if errors.Is(err, ledger.ErrUnknown) || errors.Is(err, ledger.ErrDamaged) || errors.Is(err, ledger.ErrDuplicate) { // it may be in the log: the intent stays
			return fmt.Errorf("%w; run the command again to continue", err)
		}
		if err != nil {
			return k.drop(ctx, in, err)
		}
		if err := k.finish(ctx, in); err != nil {
			return err
		}
		done.Act, done.Now = in.Act, left
	}
	for _, pointer := range pointers {
		act := search.erased[pointer]
		if act == "" {
			continue
		}
		if err := k.Destroy(ctx, record.Digest, pointer); err != nil { // a restore from a backup may have brought it back
			return err
		}
		done.Before[pointer] = act
	}
	return nil
}

// allKept returns an error if a value is missing, or not found in a damaged file: the act must not say that this erasure destroyed it.
func (k *Keeper) allKept(ctx context.Context, r *evidence.Record, pointers []string) error {
	for _, pointer := range pointers {
		_, err := k.Open(ctx, r.Digest, pointer)
		repairable := errors.Is(err, ErrDamaged) && !cannotBeFound(err)
		if err != nil && !repairable { // someone may be able to repair a damaged value
			return fmt.Errorf("field %s: %w", pointer, err)
		}
	}
	return nil
}

// begin writes the intent. It returns an error if another process has an intent for the same record.
func (k *Keeper) begin(ctx context.Context, in intent) error {
	if _, err := actOf(in); err != nil {
		return err
	}
	text, err := json.Marshal(in)
	if err != nil {
		return err
	}
	err = k.Files.Create(ctx, intentFile(in.Record), append(text, '\n'))
	if errors.Is(err, fs.ErrExist) {
		return errors.New("an erasure of this record is under way in another process: try again")
	}
	k.after("intent written")
	return err
}

// drop removes an intent before its act is sealed. It returns why, and an error of the removal.
func (k *Keeper) drop(ctx context.Context, in intent, why error) error {
	// The intent must go even if the caller has cancelled.
	return errors.Join(why, removeIntent(context.WithoutCancel(ctx), k.Files, in))
}

// seal puts the act into the log, unless it is there.
func (k *Keeper) seal(ctx context.Context, in intent) error {
	act, err := actOf(in)
	if err != nil {
		return err
	}
	_, err = k.Operator.Seal(ctx, act)
	if errors.Is(err, ledger.ErrDuplicate) {
		if is := k.isAct(ctx, in); is != nil {
			return fmt.Errorf("%w; %w", err, is)
		}
		err = nil
	}
	if err != nil {
		return err
	}
	k.after("act sealed")
	return nil
}

func actOf(in intent) (evidence.Payload, error) {
	return ledger.OperatorAct(evidence.Payload{ActionType: evidence.Erasure, RecordID: in.Act, Timestamp: in.Timestamp,
		Saw: []evidence.Digest{in.Record}}, in.ErasureBody)
}

// isAct returns an error unless an intent's act is the record with its id; one with ledger.ErrNotFound in its chain if there is no such record.
func (k *Keeper) isAct(ctx context.Context, in intent) error {
	r, err := k.Operator.Ledger.Record(ctx, in.Act)
	if err != nil {
		return err
	}
	body, err := operator.ReadErasure(&r.Payload)
	if err != nil {
		return fmt.Errorf("record %s, which is to be the act of erasure: %w", in.Act, err)
	}
	if body.Record != in.Record || !slices.Equal(body.Pointers, in.Pointers) {
		return fmt.Errorf("record %s is the act of another erasure", in.Act)
	}
	return nil
}

// finish destroys the values that an act in the log names. It can be repeated after a crash at any point.
func (k *Keeper) finish(ctx context.Context, in intent) error {
	ctx = context.WithoutCancel(ctx) // the act in the log says that the values are destroyed, so cancelling must not stop this
	for _, pointer := range in.Pointers {
		if err := k.Destroy(ctx, in.Record, pointer); err != nil {
			return err
		}
	}
	k.after("values destroyed")
	if err := removeIntent(ctx, k.Files, in); err != nil {
		return err
	}
	k.after("intent removed")
	return nil
}

// resume continues an interrupted erasure of this record.
func (k *Keeper) resume(ctx context.Context, r *evidence.Record, done *Erased) error {
	in, err := readIntent(ctx, k.Files, intentFile(r.Digest))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	// The process that wrote this intent may have come second, and be about to drop it: what another act erased, a second one must not.
	earlier := k.newSearch(r, in.Pointers)
	if _, err := earlier.log(ctx, 0, nil); err != nil {
		return err
	}
	if slices.ContainsFunc(in.Pointers, func(p string) bool { act := earlier.erased[p]; return act != "" && act != in.Act }) {
		return k.drop(ctx, in, nil)
	}
	if err := k.seal(ctx, in); err != nil {
		return err
	}
	for _, pointer := range in.Pointers {
		done.Before[pointer] = ""
	}
	return k.finish(ctx, in)
}

// Finish continues erasures that were interrupted after their act was sealed. The act says that the values are destroyed.
func (k *Keeper) Finish(ctx context.Context) error {
	pending, err := readIntents(ctx, k.Files)
	if err != nil {
		return err
	}
	for _, in := range pending {
		err := k.isAct(ctx, in)
		if errors.Is(err, ledger.ErrNotFound) {
			continue // in progress in another process, or interrupted before its act
		}
		if err == nil {
			err = k.finish(ctx, in)
		}
		if err != nil {
			return fmt.Errorf("finishing the erasure in %s: %w", k.Files.Where(intentFile(in.Record)), err)
		}
	}
	return nil
}

// An intent is an erasure in progress. Each record has at most one.
type intent struct {
	Act                  string `json:"act"` // the record id of the act, which is in the log or will be
	operator.ErasureBody        // of the act
	Timestamp            string `json:"timestamp"`
}

// IntentsFolder is the folder of erasures in progress.
const IntentsFolder = "apart/erasing"

func intentFile(record evidence.Digest) string {
	return path.Join(IntentsFolder, hex.EncodeToString(record[:])+".json")
}

func readIntent(ctx context.Context, files filestore.Store, file string) (in intent, err error) {
	if err := filestore.ReadJSON(ctx, files, file, &in); err != nil {
		return in, err
	}
	if file != intentFile(in.Record) || len(in.Pointers) == 0 {
		return in, fmt.Errorf("reading %s: its name does not match its record, or it names no field", files.Where(file))
	}
	return in, nil
}

func readIntents(ctx context.Context, files filestore.Store) ([]intent, error) {
	return filestore.ListJSON(ctx, files, IntentsFolder, func(file string) (intent, error) { return readIntent(ctx, files, file) })
}

// removeIntent removes an intent, unless another process has removed it and perhaps begun another erasure.
func removeIntent(ctx context.Context, files filestore.Store, in intent) error {
	file := intentFile(in.Record)
	now, err := readIntent(ctx, files, file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && now.Act != in.Act {
		return nil
	}
	if err != nil {
		return err
	}
	if err := files.Remove(ctx, file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

const (
	// leastText is the least number of characters of a text that is searched for. Shorter texts occur everywhere.
	leastText = 8
	// leastQuote is the least number of characters of a string that counts as a quotation if it is part of the text.
	leastQuote = 16
)

// A Quote is a place where the text that is to be erased, or a part of it, also stands, and that the erasure does not reach.
type Quote struct {
	RecordID string
	Action   evidence.ActionType
	Role     evidence.Role
	Actor    string
	Member   string // pointer to the member of the payload
	Part     bool   // it is only a part of the text
	Reason   string // why the search could not read the place; "": the text stands there
}

// A search searches the log for the texts that are to be erased, and for acts that say that they were erased.
type search struct {
	*Keeper
	record   *evidence.Record
	pointers []string
	wanted   []string          // trimmed
	erased   map[string]string // the record's erased pointers, and the act that erased each
	quotes   []Quote
}

func (k *Keeper) newSearch(r *evidence.Record, pointers []string) *search {
	return &search{Keeper: k, record: r, pointers: pointers, erased: map[string]string{}}
}

// values reads the texts to search for. Texts that are already destroyed are skipped.
func (s *search) values(ctx context.Context, done *Erased) error {
	for _, pointer := range s.pointers {
		d, err := s.Open(ctx, s.record.Digest, pointer)
		switch {
		case errors.Is(err, ErrNone):
			continue
		case errors.Is(err, ErrDamaged):
			s.add(s.record, Quote{Member: pointer, Reason: fmt.Sprintf("the text cannot be read, so it cannot be looked for anywhere: %v", err)})
			continue
		case err != nil:
			return fmt.Errorf("field %s: %w", pointer, err)
		}
		before := len(s.wanted)
		for text := range stringsIn(d.Value) {
			if text = strings.TrimSpace(text); utf8.RuneCountInString(text) >= leastText && !slices.Contains(s.wanted, text) {
				s.wanted = append(s.wanted, text)
			}
		}
		if len(s.wanted) == before {
			done.TooShort = append(done.TooShort, pointer)
		}
	}
	return nil
}

// log searches the log from an index on, and returns the index after the last record.
func (s *search) log(ctx context.Context, from int64, progress func(done, total int64)) (int64, error) {
	total, err := s.Operator.Ledger.Size(ctx)
	if err != nil {
		return 0, err
	}
	at := from
	for r, err := range s.Operator.Ledger.Records(ctx, from) {
		if err != nil {
			return at, err
		}
		if err := s.look(ctx, r.Record); err != nil {
			return at, err
		}
		if at = r.Index + 1; progress != nil {
			progress(at, max(at, total))
		}
	}
	return at, nil
}

func (s *search) look(ctx context.Context, r *evidence.Record) error {
	if r.Payload.ActionType == evidence.Erasure {
		body, err := operator.ReadErasure(&r.Payload)
		if err != nil {
			return fmt.Errorf("record %s: %w", r.Payload.RecordID, err)
		}
		for _, pointer := range body.Pointers {
			if body.Record == s.record.Digest && s.erased[pointer] == "" {
				s.erased[pointer] = r.Payload.RecordID
			}
		}
	}
	if len(s.wanted) == 0 {
		return nil
	}
	members, err := r.Members()
	if err != nil {
		return fmt.Errorf("record %s: %w", r.Payload.RecordID, err)
	}
	for name, value := range members {
		s.member(r, "/"+name, value, said(name))
	}
	for _, pointer := range r.Payload.SealedApart {
		if r.Digest == s.record.Digest && slices.Contains(s.pointers, pointer) {
			continue
		}
		d, err := s.Open(ctx, r.Digest, pointer)
		switch {
		case err == nil:
			s.member(r, pointer, d.Value, true)
		case !errors.Is(err, ErrNone) && !errors.Is(err, ErrElsewhere):
			s.add(r, Quote{Member: pointer, Reason: err.Error()})
		}
	}
	return nil
}

// said reports whether a member holds what an actor said, where parts of a text count as quotations. Others hold names, which occur in every text.
func said(name string) bool {
	return slices.Contains([]string{"prompt", "context", "response", "tools_used", "metadata", "modified_response", "changes"}, name)
}

func (s *search) member(r *evidence.Record, pointer string, value jsontext.Value, parts bool) {
	part := false
	for text := range stringsIn(value) {
		if s.holds(text) {
			s.add(r, Quote{Member: pointer})
			return
		}
		text = strings.TrimSpace(text)
		part = part || parts && utf8.RuneCountInString(text) >= leastQuote && slices.ContainsFunc(s.wanted, func(t string) bool { return strings.Contains(t, text) })
	}
	if part {
		s.add(r, Quote{Member: pointer, Part: true})
	}
}

// holds reports whether a text contains one of the wanted texts.
func (s *search) holds(text string) bool {
	return slices.ContainsFunc(s.wanted, func(t string) bool { return strings.Contains(text, t) })
}

func (s *search) add(r *evidence.Record, q Quote) {
	p := &r.Payload
	q.RecordID, q.Action, q.Role, q.Actor = p.RecordID, p.ActionType, p.Role(), p.Actor()
	if !slices.Contains(s.quotes, q) {
		s.quotes = append(s.quotes, q)
	}
}

// stringsIn iterates over the unescaped strings of a JSON value, member names included.
func stringsIn(value jsontext.Value) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		dec := jsontext.NewDecoder(strings.NewReader(string(value)))
		for {
			token, err := dec.ReadToken()
			if err != nil {
				return // the end; the values of a record are well-formed
			}
			if token.Kind() == '"' && !yield(token.String()) {
				return
			}
		}
	}
}
