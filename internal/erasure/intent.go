package erasure

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/filestore"
)

// An intent is an erasure in progress. Each record has at most one.
type intent struct {
	Act       string          `json:"act"` // the record id of the act, which is in the log or will be
	By        string          `json:"by"`
	Pointers  []string        `json:"pointers"`
	Reason    string          `json:"reason"`
	Record    evidence.Digest `json:"record"`
	Timestamp string          `json:"timestamp"`
}

func (in *intent) body() operator.ErasureBody {
	return operator.ErasureBody{By: in.By, Pointers: in.Pointers, Reason: in.Reason, Record: in.Record}
}

// IntentsFolder is the folder of erasures in progress.
const IntentsFolder = "apart/erasing"

var errUnderWay = errors.New("an erasure of this record is under way in another process")

func intentFile(record evidence.Digest) string {
	return path.Join(IntentsFolder, hex.EncodeToString(record[:])+".json")
}

func createIntent(ctx context.Context, files filestore.Store, in intent) error {
	text, err := json.Marshal(in)
	if err != nil {
		return err
	}
	err = files.Create(ctx, intentFile(in.Record), append(text, '\n'))
	if errors.Is(err, fs.ErrExist) {
		return errUnderWay
	}
	return err
}

// readIntent returns nil if there is no intent.
func readIntent(ctx context.Context, files filestore.Store, file string) (*intent, error) {
	text, err := files.Read(ctx, file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	in := new(intent)
	if err := json.Unmarshal(text, in, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("reading %s: %w", files.Where(file), err)
	}
	if file != intentFile(in.Record) || len(in.Pointers) == 0 {
		return nil, fmt.Errorf("reading %s: its name does not match its record, or it names no field", files.Where(file))
	}
	return in, nil
}

func readIntents(ctx context.Context, files filestore.Store) (list []intent, err error) {
	err = filestore.EachJSON(ctx, files, IntentsFolder, func(file string) error {
		in, err := readIntent(ctx, files, file)
		if in != nil { // another process may have finished it
			list = append(list, *in)
		}
		return err
	})
	return list, err
}

// removeIntent removes an intent, unless another process has removed it and perhaps begun another erasure.
func removeIntent(ctx context.Context, files filestore.Store, in intent) error {
	file := intentFile(in.Record)
	now, err := readIntent(ctx, files, file)
	if err != nil || now == nil || now.Act != in.Act {
		return err
	}
	if err := files.Remove(ctx, file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
