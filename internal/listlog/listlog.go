// Package listlog keeps trusted lists of the EU, and seals which ones an installation keeps.
//
// # A list that is kept can be shown to have existed
//
// No authority keeps old lists where everybody can get them. The act that has a list's digest is in the log, and stamped: so a reader can see
// that the list is not made up later. The file is in the installation's file store before its act is sealed. The log decides what is kept
// already, so Keep can be repeated at any time.
package listlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/filestore"
	"jurat/internal/ledger"
	"jurat/trustlist"
)

// Folder is the folder of the lists in an installation's file store.
const Folder = "trusted-lists"

// A Log is where trusted lists are kept. All its fields are required.
type Log struct {
	Ledger   *ledger.Ledger
	Operator ledger.Operator
	Files    filestore.Store
}

// A File is a list that was verified, and its bytes.
type File struct {
	List *trustlist.List
	Raw  []byte
}

// A Kept is a list that the log names.
type Kept struct {
	operator.TrustedListBody
	Record string    `json:"record"` // id of the act
	At     time.Time `json:"at"`     // when the act was sealed, by its own claim
}

// Keep keeps the lists that the log does not name yet, and seals an act for each. It returns those that it kept, in the order of the lists.
func (l *Log) Keep(ctx context.Context, lists []File, by, reason string) ([]Kept, error) {
	records, err := l.keep(ctx, lists, by, reason)
	if err != nil {
		return nil, fmt.Errorf("keeping trusted lists: %w", err)
	}
	return keptIn(records)
}

func (l *Log) keep(ctx context.Context, lists []File, by, reason string) ([]*evidence.Record, error) {
	var bodies []operator.TrustedListBody
	before, err := l.All(ctx)
	if err != nil {
		return nil, err
	}
	for _, f := range lists {
		body := bodyOf(f, by, reason)
		if names(before, body.Digest) {
			continue
		}
		if err := l.store(ctx, body.Digest, f.Raw); err != nil {
			return nil, err
		}
		bodies = append(bodies, body)
	}
	if len(bodies) == 0 {
		return nil, nil
	}
	return l.Operator.SealNext(ctx, operator.ListsChain, func(chain []*evidence.Record) ([]evidence.Payload, error) {
		there, err := keptIn(chain) // another process may have been faster
		if err != nil {
			return nil, err
		}
		var payloads []evidence.Payload
		for _, body := range bodies {
			if names(there, body.Digest) {
				continue
			}
			p, err := ledger.OperatorAct(evidence.Payload{ActionType: evidence.TrustedList, ChainID: operator.ListsChain}, body)
			if err != nil {
				return nil, err
			}
			payloads = append(payloads, p)
		}
		return payloads, nil
	})
}

func bodyOf(f File, by, reason string) operator.TrustedListBody {
	body := operator.TrustedListBody{By: by, Digest: evidence.Digest(f.List.Digest), Issued: evidence.FormatTime(f.List.Issued), Reason: reason,
		Sequence: int64(f.List.Sequence), Territory: f.List.Territory}
	if !f.List.NextUpdate.IsZero() {
		body.NextUpdate = evidence.FormatTime(f.List.NextUpdate)
	}
	return body
}

func names(list []Kept, digest evidence.Digest) bool {
	return slices.ContainsFunc(list, func(k Kept) bool { return k.Digest == digest })
}

// store keeps a file. One that is there already, after a crash or by another process, is replaced if it is damaged.
func (l *Log) store(ctx context.Context, digest evidence.Digest, raw []byte) error {
	if evidence.DigestOf(raw) != digest {
		return fmt.Errorf("%s: the file has another digest than the list", digest)
	}
	err := l.Files.Create(ctx, fileOf(digest), raw)
	if errors.Is(err, fs.ErrExist) {
		return l.Files.Replace(ctx, fileOf(digest), raw)
	}
	return err
}

func fileOf(digest evidence.Digest) string {
	return path.Join(Folder, strings.TrimPrefix(digest.String(), "sha256:")+".xml")
}

// All returns every list that the log names, in the order of the log.
func (l *Log) All(ctx context.Context) ([]Kept, error) {
	chain, err := l.Ledger.Chain(ctx, operator.ListsChain)
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return nil, err
	}
	return keptIn(chain)
}

func keptIn(chain []*evidence.Record) (list []Kept, err error) {
	for _, r := range chain {
		body, err := operator.ReadTrustedList(&r.Payload)
		if err != nil {
			return nil, fmt.Errorf("record %s: %w", r.Payload.RecordID, err)
		}
		list = append(list, Kept{*body, r.Payload.RecordID, r.Payload.Time()})
	}
	return list, nil
}

// At returns of each territory the list that was the newest at a moment: the last one that was issued by then.
func At(list []Kept, moment time.Time) (newest []Kept) {
	for _, k := range list {
		issued := k.issued()
		if issued.After(moment) {
			continue
		}
		i := slices.IndexFunc(newest, func(n Kept) bool { return n.Territory == k.Territory })
		switch {
		case i < 0:
			newest = append(newest, k)
		case issued.After(newest[i].issued()) || issued.Equal(newest[i].issued()) && k.Sequence > newest[i].Sequence:
			newest[i] = k
		}
	}
	return newest
}

// issued is when the list was issued. ReadTrustedList has read the text.
func (k *Kept) issued() time.Time {
	at, _ := evidence.ParseTime(k.Issued)
	return at
}

// Read returns the bytes of a list that is kept. The error wraps fs.ErrNotExist if the file is gone.
func (l *Log) Read(ctx context.Context, digest evidence.Digest) ([]byte, error) {
	raw, err := l.Files.Read(ctx, fileOf(digest))
	if err != nil {
		return nil, fmt.Errorf("reading trusted list %s: %w", digest, err)
	}
	if evidence.DigestOf(raw) != digest {
		return nil, fmt.Errorf("%s is damaged: it has another digest than its name says", l.Files.Where(fileOf(digest)))
	}
	return raw, nil
}
