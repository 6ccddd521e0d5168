package lab

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
)

// A fund is what all calls of a laboratory may cost together. It writes each call to a file before it is made, and its cost after it. A
// call whose cost was never written counts with all that was set aside for it: the process may have died after paying. It is safe for
// concurrent use.
type fund struct {
	ceiling int64

	mu       sync.Mutex // held while a line is written and the fields below change
	file     *os.File
	calls    int64
	spent    int64
	reserved int64
	refused  bool
}

// An entry is a line of the file. Exactly one of the amounts is there.
type entry struct {
	Call    int64  `json:"call"`
	Aside   *int64 `json:"asideMicroUSD,omitzero"`  // before the call
	Cost    *int64 `json:"costMicroUSD,omitzero"`   // after it
	Earlier *int64 `json:"beforeMicroUSD,omitzero"` // of calls that are not in this file, as they were made without a ceiling
}

// openFund reads what was spent. sealed is the cost of all sealed answers, which the file may not know.
func openFund(file string, ceiling, sealed int64) (*fund, error) {
	f := &fund{ceiling: ceiling}
	whole, err := f.read(file)
	if err != nil {
		return nil, err
	}
	if f.file, err = os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o644); err != nil {
		return nil, fmt.Errorf("opening the list of what was spent: %w", err)
	}
	// A process that was killed may have left half a line, for a call that it had not made.
	err = f.file.Truncate(whole)
	if err == nil {
		_, err = f.file.Seek(whole, 0)
	}
	if err == nil && sealed > f.spent {
		f.calls++
		err = f.write(entry{Call: f.calls, Earlier: new(sealed - f.spent)})
		f.spent = sealed
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the list of what was spent: %w", err), f.file.Close())
	}
	return f, nil
}

// read adds up a file, and returns the length of its whole lines.
func (f *fund) read(file string) (whole int64, err error) {
	doc, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading what was spent: %w", err)
	}
	doc = doc[:bytes.LastIndexByte(doc, '\n')+1]
	amounts := map[int64]int64{}
	number := 0
	for line := range bytes.Lines(doc) {
		number++
		var e entry
		if err := json.Unmarshal(line, &e, json.RejectUnknownMembers(true)); err != nil {
			return 0, fmt.Errorf("reading what was spent: %s, line %d: %w", file, number, evidence.Steady(err))
		}
		amount, n := int64(0), 0
		for _, a := range []*int64{e.Aside, e.Cost, e.Earlier} {
			if a != nil {
				amount, n = *a, n+1
			}
		}
		if n != 1 || amount < 0 || e.Call < 1 {
			return 0, fmt.Errorf("reading what was spent: %s, line %d: want a call with one amount from 0 on", file, number)
		}
		amounts[e.Call] = amount
		f.calls = max(f.calls, e.Call)
	}
	for _, amount := range amounts {
		f.spent += amount
	}
	return int64(len(doc)), nil
}

func (f *fund) write(e entry) error {
	line, err := json.Marshal(e)
	if err == nil {
		_, err = f.file.Write(append(line, '\n'))
	}
	return err
}

// Reserve implements llm.Budget. It returns ErrCeiling if too little is left, or if the call could not be written down.
func (f *fund) Reserve(estimate int64) (settle func(actual int64), err error) {
	estimate = max(estimate, 0)
	f.mu.Lock()
	defer f.mu.Unlock()
	if estimate > f.ceiling-f.spent-f.reserved {
		f.refused = true
		return nil, ErrCeiling
	}
	f.calls++
	call := f.calls
	if err := f.write(entry{Call: call, Aside: &estimate}); err != nil {
		return nil, fmt.Errorf("%w: writing down the call: %w", ErrCeiling, err)
	}
	f.reserved += estimate
	var once sync.Once
	return func(actual int64) {
		once.Do(func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.reserved -= estimate
			actual = max(actual, 0)
			if f.write(entry{Call: call, Cost: &actual}) != nil {
				actual = max(actual, estimate) // as the file has it
			}
			f.spent += actual
		})
	}, nil
}

func (f *fund) state() (spent int64, refused bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.spent, f.refused
}

func (f *fund) close() error { return f.file.Close() }
