package recording

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/atomicfile"
	"jurat/internal/lock"
)

// State is what a process says of its work while it runs. It is no evidence: the log is.
type State struct {
	Sealed  int64  `json:"sealed"`            // calls, since it began
	Waiting int    `json:"waiting"`           // calls that ended and could not be sealed yet
	Missed  int64  `json:"missed"`            // calls that passed without a record, and are not counted in the log yet
	Trouble string `json:"trouble,omitempty"` // why the log does not seal
}

const stateFile = "state.json"

func (r *Recorder) state() State {
	s := State{Sealed: r.sealed.Load(), Waiting: r.unsealed.count(), Missed: r.gaps.count()}
	if why := r.unsealed.trouble(); why != nil {
		s.Trouble = why.Error()
	}
	return s
}

// tellState writes the state if it has changed, and returns it. The file is not synced, since nothing rests on it.
func (r *Recorder) tellState(last State) State {
	now := r.state()
	if now == last {
		return last
	}
	if err := writeState(filepath.Join(r.own, stateFile), now); err != nil {
		r.Tell.Warn("the state of the recorder could not be written; 'jurat doctor --recorders' shows an older one", "error", err)
	}
	return now
}

func writeState(file string, s State) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// A Process is a recorder that runs on a folder, or died there. One that ended well has left nothing.
type Process struct {
	ID      string `json:"id"`
	About   About  `json:"about"`
	Running bool   `json:"running"`
	State   State  `json:"state"` // the last that it wrote

	Open         int       `json:"open"`            // calls in the journal that have no end
	Oldest       time.Time `json:"oldest,omitzero"` // when the first of these began
	JournalBytes int64     `json:"journal_bytes"`
	Damaged      int       `json:"damaged,omitempty"` // parts of the journal that cannot be read: each may be a call
	Copies       int       `json:"copies"`            // files of the spool
	CopyBytes    int64     `json:"copy_bytes"`
}

// Look returns the processes that a folder knows, the oldest first. It changes nothing. A folder that is not there knows none.
func Look(ctx context.Context, folder string) ([]Process, error) {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	locks := lock.NewFolder(filepath.Join(folder, locksFolder))
	var list []Process
	for _, e := range entries {
		if evidence.CheckRecordID(e.Name()) != nil {
			continue
		}
		p, err := lookAt(ctx, locks, folder, e.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue // it ended meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("looking at the recorder in %s: %w", filepath.Join(folder, e.Name()), err)
		}
		list = append(list, p)
	}
	return list, nil
}

func lookAt(ctx context.Context, locks *lock.Folder, folder, id string) (p Process, err error) {
	p.ID, folder = id, filepath.Join(folder, id)
	if p.Running, err = locks.Locked(ctx, id); err != nil {
		return p, err
	}
	if p.About, err = readAbout(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return p, err
	}
	text, err := os.ReadFile(filepath.Join(folder, stateFile))
	if err == nil {
		err = json.Unmarshal(text, &p.State)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return p, err
	}
	left, unreadable, err := readJournal(filepath.Join(folder, journalFile))
	if err != nil {
		return p, err
	}
	p.Damaged = len(unreadable)
	for _, i := range left {
		if p.Open++; p.Oldest.IsZero() || i.Began.Before(p.Oldest) {
			p.Oldest = i.Began
		}
	}
	info, err := os.Stat(filepath.Join(folder, journalFile))
	if err != nil {
		return p, err
	}
	p.JournalBytes = info.Size()
	return p, p.measure(filepath.Join(folder, spoolFolder))
}

// measure counts the copies of bodies.
func (p *Process) measure(spool string) error {
	files, err := os.ReadDir(spool)
	if err != nil {
		return err
	}
	for _, f := range files {
		info, err := f.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // its call ended meanwhile
		}
		if err != nil {
			return err
		}
		p.Copies++
		p.CopyBytes += info.Size()
	}
	return nil
}

// About is what a recorder's folder says of its process. Who looks at the folder later knows by it whose calls the journal has.
type About struct {
	Recorder string           `json:"recorder"`
	Mode     observed.Mode    `json:"mode"`
	Vantage  evidence.Vantage `json:"vantage"`
	Agent    string           `json:"agent,omitempty"` // of calls without a token
	Version  string           `json:"version"`
	Began    time.Time        `json:"began"`
	Process  int              `json:"process"`

	Heartbeat int64 `json:"heartbeat_ms,omitempty"` // how often the log hears of it, in milliseconds
}

const aboutFile = "about.json"

// introduce writes who this process is.
func (r *Recorder) introduce() error {
	text, err := json.Marshal(About{Recorder: r.Name, Mode: r.Mode, Vantage: r.Vantage, Agent: r.Agent, Version: r.Version, Began: r.Now(), Process: os.Getpid(), Heartbeat: r.Heartbeat.Milliseconds()})
	if err != nil {
		return err
	}
	return atomicfile.Replace(filepath.Join(r.own, aboutFile), text, 0o600)
}

// readAbout reads what introduce wrote. Folders of earlier versions have none: fs.ErrNotExist.
func readAbout(folder string) (a About, err error) {
	file := filepath.Join(folder, aboutFile)
	text, err := os.ReadFile(file)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, fmt.Errorf("%s: %w; move it away, and what is left in the folder is sealed by the next recorder in its own name", file, err)
	}
	if err := evidence.CheckName(a.Recorder); err != nil {
		return a, fmt.Errorf("%s: recorder: %w; move it away, and what is left in the folder is sealed by the next recorder in its own name", file, err)
	}
	return a, nil
}
