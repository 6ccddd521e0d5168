package erasure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/archive"
	"jurat/internal/filestore"
	"jurat/internal/ledger"
)

// An Eraser destroys what opens members that are sealed apart. All its fields are required.
type Eraser struct {
	Ledger    *ledger.Ledger
	Operator  ledger.Operator // of the same ledger
	Texts     *Store
	Files     filestore.Store // has the intents
	Now       func() time.Time
	CheckHeld func(context.Context, *evidence.Record) error // returns an *archive.HeldError if a record is on hold
	After     func(step string)                             // told when a step is done; tests crash there
}

// An Order says what is to be destroyed, and why.
type Order struct {
	RecordID      string
	Pointers      []string // to members that are sealed apart
	Reason, By    string   // as the act will say, for everybody to read
	DespiteQuotes bool     // although the text stands elsewhere, too
	Progress      func(done, total int64)
}

// Erased says what became of an order.
type Erased struct {
	Act      string            // record id of the act; "": there was nothing left to erase
	Now      []string          // pointers of what was destroyed
	Before   map[string]string // pointers of what had been destroyed before, and the act that says so; "": it has just been finished
	TooShort []string          // pointers of texts that are too short to be looked for elsewhere
	Quotes   []Quote           // where the text stands, too, and stays
}

// QuotedError says that a text stands elsewhere, so that erasing it here does not make it go away.
type QuotedError struct{ Quotes []Quote }

func (e *QuotedError) Error() string {
	return fmt.Sprintf("the text stands in %d more places, which an erasure does not reach", len(e.Quotes))
}

// Erase destroys what opens members of a record that are sealed apart, so that nobody can ever read them again. The
// record, and every proof that rests on it, stays.
//
// The order of steps is: the intent, durable; the act, sealed into the log if nothing in it holds the record by then; the keys; the values; the intent removed. A
// crash after the first leaves an intent without an act: nothing was erased, and Erase goes on with it. A crash after
// the act leaves an intent with an act: Open or Erase goes on with it. The act has the record id that the intent gives
// it, and so is in the log once, however often and by however many processes it is tried.
func (e *Eraser) Erase(ctx context.Context, o Order) (*Erased, error) {
	done, err := e.erase(ctx, o)
	if err != nil {
		return done, fmt.Errorf("erasing of record %s: %w", o.RecordID, err)
	}
	return done, nil
}

func (e *Eraser) erase(ctx context.Context, o Order) (*Erased, error) {
	if strings.TrimSpace(o.Reason) == "" || strings.TrimSpace(o.By) == "" {
		return nil, errors.New("an erasure has a reason, and somebody who decided it")
	}
	record, err := e.Ledger.Record(ctx, o.RecordID)
	if err != nil {
		return nil, err
	}
	pointers := slices.Compact(slices.Sorted(slices.Values(o.Pointers)))
	if err := erasable(record, pointers); err != nil {
		return nil, err
	}
	if err := e.Ledger.CanAppend(ctx); err != nil {
		return nil, err
	}
	done := &Erased{Before: map[string]string{}}
	if err := e.resume(ctx, record, done); err != nil { // what was begun and broken off comes first
		return nil, err
	}
	if len(done.Before) < len(pointers) {
		if err := e.CheckHeld(ctx, record); err != nil { // that is asked again when the act is sealed; here it spares the search
			return nil, err
		}
	}
	search := e.newSearch(record, pointers)
	if err := search.values(ctx, done); err != nil {
		return nil, err
	}
	if search.holds(o.Reason) || search.holds(o.By) {
		return nil, errors.New("the reason holds the text itself, and would stand in the log for ever")
	}
	end, err := search.log(ctx, 0, o.Progress)
	if err != nil {
		return nil, err
	}
	if done.Quotes = search.quotes; len(done.Quotes) > 0 && !o.DespiteQuotes {
		return done, &QuotedError{Quotes: done.Quotes}
	}
	return done, e.carryOut(ctx, o, record, pointers, search, end, done)
}

// erasable refuses what no erasure can reach.
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

// carryOut erases what has not been erased yet.
func (e *Eraser) carryOut(ctx context.Context, o Order, record *evidence.Record, pointers []string, search *search, end int64, done *Erased) error {
	left := slices.DeleteFunc(slices.Clone(pointers), func(p string) bool { return search.erased[p] != "" })
	if len(left) > 0 {
		id, err := evidence.NewRecordID(e.Now(), nil)
		if err != nil {
			return err
		}
		in := intent{Act: id, By: o.By, Pointers: left, Reason: o.Reason, Record: record.Digest, Timestamp: evidence.FormatTime(e.Now())}
		if err := e.begin(ctx, in); err != nil {
			return err
		}
		missing := e.allKept(ctx, record, left)
		// Whoever finished since the search has left an act behind where the search ended, before destroying anything.
		if _, err := search.log(ctx, end, nil); err != nil {
			return e.drop(ctx, in, err)
		}
		if slices.ContainsFunc(left, func(p string) bool { return search.erased[p] != "" }) {
			return e.drop(ctx, in, errors.New("somebody else has erased of it at the same time: try again"))
		}
		if done.Quotes = search.quotes; len(done.Quotes) > 0 && !o.DespiteQuotes {
			return e.drop(ctx, in, &QuotedError{Quotes: done.Quotes})
		}
		if missing != nil {
			return e.drop(ctx, in, missing)
		}
		err = e.seal(ctx, in, record)
		if mayBeSealed(err) {
			return fmt.Errorf("%w; run it again to go on", err)
		}
		if err != nil {
			return e.drop(ctx, in, err)
		}
		if err := e.finish(ctx, in); err != nil {
			return err
		}
		done.Act, done.Now = in.Act, left
	}
	for _, pointer := range pointers {
		act := search.erased[pointer]
		if act == "" {
			continue
		}
		if err := e.Texts.Destroy(ctx, record.Digest, pointer); err != nil { // a backup may have brought it back
			return err
		}
		done.Before[pointer] = act
	}
	return nil
}

// allKept refuses to say that something was destroyed which was not there.
func (e *Eraser) allKept(ctx context.Context, r *evidence.Record, pointers []string) error {
	for _, pointer := range pointers {
		_, err := e.Texts.Open(ctx, r.Digest, pointer)
		if err != nil && !errors.Is(err, ErrDamaged) { // what is damaged for us is not for whoever can repair it
			return fmt.Errorf("field %s: %w", pointer, err)
		}
	}
	return nil
}

// begin writes down what is about to happen, after what another process may have begun on the same record.
func (e *Eraser) begin(ctx context.Context, in intent) error {
	if _, err := actOf(in); err != nil {
		return err
	}
	err := createIntent(ctx, e.Files, in)
	if errors.Is(err, errUnderWay) {
		return fmt.Errorf("%w: try again", err)
	}
	e.After("intent written")
	return err
}

// drop takes an intent back before its act is sealed.
func (e *Eraser) drop(ctx context.Context, in intent, why error) error {
	// The intent must go even if why is that the caller has left.
	return errors.Join(why, removeIntent(context.WithoutCancel(ctx), e.Files, in))
}

// mayBeSealed reports whether an act may be in the log all the same. Then its intent stays.
func mayBeSealed(err error) bool {
	return errors.Is(err, ledger.ErrUnknown) || errors.Is(err, ledger.ErrDamaged) || errors.Is(err, ledger.ErrDuplicate)
}

// seal puts the act into the log, unless it is there, or the record is on hold by then: of a hold and an erasure that one counts which is
// first in the log. What was erased before it was held is destroyed, and what was held before is not erased.
func (e *Eraser) seal(ctx context.Context, in intent, record *evidence.Record) error {
	act, err := actOf(in)
	if err != nil {
		return err
	}
	err = e.Operator.SealIf(ctx, act, operator.RetentionChain, func(acts []*evidence.Record) error {
		book, err := archive.Read(acts)
		if err != nil {
			return err
		}
		return book.Held(record.Digest, record.Payload.ChainID)
	})
	var held *archive.HeldError
	if errors.As(err, &held) {
		is := e.isAct(ctx, in)
		if is == nil {
			return nil // it was held after the act
		}
		if !errors.Is(is, ledger.ErrNotFound) { // it may be in the log, before the hold
			return fmt.Errorf("%w: record %s, which is to be the act of erasure: looking for it: %w", ledger.ErrUnknown, in.Act, is)
		}
	}
	if errors.Is(err, ledger.ErrDuplicate) {
		if is := e.isAct(ctx, in); is != nil {
			return fmt.Errorf("%w; %w", err, is)
		}
		err = nil
	}
	if err != nil {
		return err
	}
	e.After("act sealed")
	return nil
}

func actOf(in intent) (evidence.Payload, error) {
	return ledger.OperatorAct(evidence.Payload{ActionType: evidence.Erasure, RecordID: in.Act, Timestamp: in.Timestamp,
		Saw: []evidence.Digest{in.Record}}, in.body())
}

// isAct checks that the record which has the id of an intent's act is that act. It returns an error with
// ledger.ErrNotFound in its chain if there is none.
func (e *Eraser) isAct(ctx context.Context, in intent) error {
	r, err := e.Ledger.Record(ctx, in.Act)
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

// finish destroys what an act in the log says was destroyed. It can be called again after a crash anywhere in it.
func (e *Eraser) finish(ctx context.Context, in intent) error {
	ctx = context.WithoutCancel(ctx) // the act is in the log, and says that the values are destroyed
	for _, pointer := range in.Pointers {
		if err := e.Texts.Destroy(ctx, in.Record, pointer); err != nil {
			return err
		}
	}
	e.After("values destroyed")
	if err := removeIntent(ctx, e.Files, in); err != nil {
		return err
	}
	e.After("intent removed")
	return nil
}

// resume goes on with an erasure of this record that was begun and broken off.
func (e *Eraser) resume(ctx context.Context, r *evidence.Record, done *Erased) error {
	in, err := readIntent(ctx, e.Files, intentFile(r.Digest))
	if in == nil || err != nil {
		return err
	}
	// Whoever wrote this may have come second, and be about to take it back: what was erased is not erased by another act again.
	earlier := e.newSearch(r, in.Pointers)
	if _, err := earlier.log(ctx, 0, nil); err != nil {
		return err
	}
	if slices.ContainsFunc(in.Pointers, func(p string) bool { act := earlier.erased[p]; return act != "" && act != in.Act }) {
		return e.drop(ctx, *in, nil)
	}
	var held *archive.HeldError
	if err := e.seal(ctx, *in, r); errors.As(err, &held) {
		return e.drop(ctx, *in, err)
	} else if err != nil {
		return err
	}
	for _, pointer := range in.Pointers {
		done.Before[pointer] = ""
	}
	return e.finish(ctx, *in)
}

// Finish goes on with what was broken off after its act was sealed: the act says that it was done.
func (e *Eraser) Finish(ctx context.Context) error {
	pending, err := readIntents(ctx, e.Files)
	if err != nil {
		return err
	}
	for _, in := range pending {
		err := e.isAct(ctx, in)
		if errors.Is(err, ledger.ErrNotFound) {
			continue // under way in another process, or broken off before it took effect
		}
		if err == nil {
			err = e.finish(ctx, in)
		}
		if err != nil {
			return fmt.Errorf("finishing the erasure in %s: %w", e.Files.Where(intentFile(in.Record)), err)
		}
	}
	return nil
}
