package installation

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/internal/atomicfile"
)

// An intent is an erasure that is under way. Each record has at most one.
type intent struct {
	Act       string          `json:"act"` // the record id of the act, in the log or not yet
	By        string          `json:"by"`
	Pointers  []string        `json:"pointers"`
	Reason    string          `json:"reason"`
	Record    evidence.Digest `json:"record"`
	Timestamp string          `json:"timestamp"`
}

func (in *intent) body() evidence.ErasureBody {
	return evidence.ErasureBody{By: in.By, Pointers: in.Pointers, Reason: in.Reason, Record: in.Record}
}

const erasingFolder = "apart/erasing"

var errUnderWay = errors.New("an erasure of this record is under way in another process")

func intentFile(dir string, record evidence.Digest) string {
	return filepath.Join(dir, erasingFolder, hex.EncodeToString(record[:])+".json")
}

func createIntent(dir string, in intent) error {
	text, err := json.Marshal(in)
	if err != nil {
		return err
	}
	err = atomicfile.Create(intentFile(dir, in.Record), append(text, '\n'), 0o600)
	if errors.Is(err, fs.ErrExist) {
		return errUnderWay
	}
	if err != nil {
		return err
	}
	return atomicfile.SyncFolders(filepath.Dir(filepath.Join(dir, erasingFolder)), dir) // which may be new
}

// readIntent returns nil if there is none.
func readIntent(file string) (*intent, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	in := new(intent)
	if err := json.Unmarshal(text, in, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	if filepath.Base(file) != filepath.Base(intentFile("", in.Record)) || len(in.Pointers) == 0 {
		return nil, fmt.Errorf("reading %s: it is not named for the record that it is about, or names nothing of it", file)
	}
	return in, nil
}

func readIntents(dir string) ([]intent, error) {
	files, err := jsonFiles(filepath.Join(dir, erasingFolder))
	if err != nil {
		return nil, err
	}
	var list []intent
	for _, file := range files {
		in, err := readIntent(file)
		if err != nil {
			return nil, err
		}
		if in != nil { // it may have been finished meanwhile
			list = append(list, *in)
		}
	}
	return list, nil
}

// removeIntent removes an intent, unless another process has done so, which may have begun another erasure since.
func removeIntent(dir string, in intent) error {
	file := intentFile(dir, in.Record)
	now, err := readIntent(file)
	if err != nil || now == nil || now.Act != in.Act {
		return err
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return syncFolder(filepath.Join(dir, erasingFolder))
}
