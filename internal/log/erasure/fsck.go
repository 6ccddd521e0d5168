package erasure

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"sync"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/log/ledger"
	"jurat/internal/log/ledger/fsck"
	"jurat/internal/log/ledger/storage"
)

// A Fsck checks that every value that is sealed apart is kept and matches its record, and that nothing is left of one that an act erased.
type Fsck struct {
	keeper *Keeper
	store  storage.Store
	from   int64 // the size of the log when the examination began

	mu      sync.Mutex         // held while members or acts is read or written: Record is called by many goroutines
	members map[string]*member // by the names of their values
	acts    map[string]string  // by the name of the erased value: the act's record id; of several, the first

	found []fsck.Damage
}

// A member is one value that is sealed apart.
type member struct {
	id      string // the id of its record
	pointer string
	kept    error // why the value cannot be disclosed; nil: it can
}

// NewFsck begins an examination of the values that a Keeper keeps. Its error is that of store.Head.
func NewFsck(ctx context.Context, keeper *Keeper, store storage.Store) (*Fsck, error) {
	head, err := store.Head(ctx)
	return &Fsck{keeper: keeper, store: store, from: head.Size, members: map[string]*member{}, acts: map[string]string{}}, err
}

// Record examines one record of the log. It is safe for concurrent use. It returns an error for an act of erasure that cannot be read.
func (f *Fsck) Record(ctx context.Context, r *evidence.Record) error {
	if r.Payload.ActionType == evidence.Erasure {
		body, err := operator.ReadErasure(&r.Payload)
		if err != nil {
			return err
		}
		f.mu.Lock()
		for _, pointer := range body.Pointers {
			name := Name(body.Record, pointer)
			f.acts[name] = min(cmp.Or(f.acts[name], r.Payload.RecordID), r.Payload.RecordID)
		}
		f.mu.Unlock()
	}
	for _, pointer := range r.Payload.SealedApart {
		m := &member{id: r.Payload.RecordID, pointer: pointer, kept: f.keeper.holds(ctx, r, pointer)}
		f.mu.Lock()
		f.members[Name(r.Digest, pointer)] = m
		f.mu.Unlock()
	}
	return nil
}

// holds returns an error if a member of a record cannot be disclosed.
func (v *Store) holds(ctx context.Context, r *evidence.Record, pointer string) error {
	d, err := v.Open(ctx, r.Digest, pointer)
	if err != nil {
		return err
	}
	return r.CheckDisclosure(d)
}

func (f *Fsck) report(kind fsck.Kind, id, detail string) {
	f.found = append(f.found, fsck.Damage{Kind: kind, Index: -1, RecordID: id, Detail: detail})
}

// Run returns the damage, once Record has seen the whole log. Its errors are those of the log and of the file store.
func (f *Fsck) Run(ctx context.Context) ([]fsck.Damage, error) {
	if err := f.meanwhile(ctx); err != nil {
		return nil, err
	}
	there := map[string]bool{}
	err := f.keeper.values.Each(ctx, func(name string) error {
		if f.members[name] == nil && f.acts[name] == "" {
			f.report(fsck.DamageOrphan, "", f.keeper.values.Where(name))
		}
		there[name] = true
		return nil
	})
	if cannotBeFound(err) {
		f.report(fsck.DamageApart, "", err.Error())
	} else if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(f.members)) {
		f.member(f.members[name], f.acts[name], name, there[name])
	}
	return f.found, f.intents(ctx)
}

func (f *Fsck) member(m *member, act, name string, there bool) {
	switch {
	case act != "" && there:
		f.report(fsck.DamageNotErased, m.id, m.pointer+" by act "+act+": "+f.keeper.values.Where(name)+"; erase it again")
	case act != "" || m.kept == nil || errors.Is(m.kept, ErrElsewhere):
	case errors.Is(m.kept, ErrNone):
		f.report(fsck.DamageApartLost, m.id, m.pointer)
	default:
		f.report(fsck.DamageApartChanged, m.id, m.pointer+": "+m.kept.Error())
	}
}

// meanwhile examines the records that were appended during the examination. One of them may be the act that erased a missing value.
func (f *Fsck) meanwhile(ctx context.Context) error {
	const page = 32
	for {
		rows, err := f.store.Rows(ctx, f.from, page)
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, row := range rows {
			r, err := evidence.OpenParts(row.Payload, row.Signatures, row.Timestamps)
			if err != nil {
				continue // the next examination of the log reports this record
			}
			if err := f.Record(ctx, r); err != nil {
				return err
			}
		}
		f.from = rows[len(rows)-1].Index + 1
	}
}

// intents reports erasures that were begun and not finished.
func (f *Fsck) intents(ctx context.Context) error {
	pending, err := readIntents(ctx, f.keeper.Files)
	if err != nil {
		return err
	}
	for _, in := range pending {
		sealed := "nothing was erased yet: erase it again"
		row, err := f.store.ByDigest(ctx, in.Record)
		if err != nil && !errors.Is(err, ledger.ErrNotFound) {
			return err
		}
		if _, err := f.store.ByRecordID(ctx, in.Act); err == nil {
			sealed = "its act is in the log: the next command that opens this installation finishes it"
		} else if !errors.Is(err, ledger.ErrNotFound) {
			return err
		}
		f.report(fsck.DamageErasing, row.RecordID, path.Base(intentFile(in.Record))+": "+sealed)
	}
	return nil
}
