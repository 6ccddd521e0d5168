package sealer

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/kit/atomicfile"
	"jurat/internal/log/lock"
	"jurat/internal/tap/relay"
)

const (
	journalFile = "journal"
	spoolFolder = "spool"
	locksFolder = "locks"
)

// Spool is the folder for the relay's copies.
func (r *Recorder) Spool() string { return filepath.Join(r.own, spoolFolder) }

// recover seals what processes that died have left in the folder, and makes a folder for this process.
func (r *Recorder) recover(ctx context.Context) error {
	if err := os.MkdirAll(r.Folder, 0o700); err != nil {
		return err
	}
	locks := lock.NewFolder(filepath.Join(r.Folder, locksFolder))
	entries, err := os.ReadDir(r.Folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if evidence.CheckRecordID(e.Name()) != nil {
			continue
		}
		if err := r.recoverOne(ctx, locks, e.Name()); err != nil {
			return fmt.Errorf("finishing what a recorder left in %s: %w", filepath.Join(r.Folder, e.Name()), err)
		}
	}
	return r.begin(ctx, locks)
}

func (r *Recorder) begin(ctx context.Context, locks *lock.Folder) error {
	id, err := evidence.NewRecordID(r.Now(), rand.Reader)
	if err != nil {
		return err
	}
	_, release, err := locks.Lock(context.WithoutCancel(ctx), id)
	if err != nil {
		return err
	}
	r.own, r.release = filepath.Join(r.Folder, id), release
	if err := os.MkdirAll(r.Spool(), 0o700); err != nil {
		return err
	}
	if err := atomicfile.SyncFolders(r.own, filepath.Dir(filepath.Clean(r.Folder))); err != nil { // or a power cut takes the journal with its folder
		return err
	}
	r.after("folder made")
	text, err := json.Marshal(About{Recorder: r.Name, Mode: r.Mode, Vantage: r.Vantage, Agent: r.Agent, Version: r.Version, Began: r.Now(), Process: os.Getpid(),
		Heartbeat: r.Heartbeat.Milliseconds()})
	if err == nil {
		err = atomicfile.Replace(filepath.Join(r.own, aboutFile), text, 0o600)
	}
	if err != nil {
		return err
	}
	r.journal, err = openJournal(filepath.Join(r.own, journalFile), r.after)
	return err
}

func (r *Recorder) leave() error {
	defer r.release()
	left, err := r.journal.close()
	if left > 0 || err != nil {
		return err // the next process seals that they were lost
	}
	return os.RemoveAll(r.own)
}

// recoverOne seals what one process left, if that process has ended.
func (r *Recorder) recoverOne(ctx context.Context, locks *lock.Folder, id string) error {
	_, release, err := locks.Lock(ctx, id)
	if errors.Is(err, lock.ErrTaken) {
		return nil
	}
	if err != nil {
		return err
	}
	defer release()
	folder := filepath.Join(r.Folder, id)
	left, unreadable, err := readJournal(filepath.Join(folder, journalFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	about, err := readAbout(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, i := range left {
		err := r.sealLost(ctx, folder, cmp.Or(about.Recorder, r.Name), i)
		if errors.Is(err, errNoRecord) { // a damaged line that looks whole
			unreadable, err = append(unreadable, damaged{recordID: i.RecordID, agent: i.Agent, after: i.Began}), nil
		}
		if err != nil {
			return err
		}
		r.after("lost sealed")
	}
	if len(unreadable) > 0 {
		if err := r.keepDamaged(ctx, id, about, unreadable); err != nil {
			return err
		}
	}
	err = os.RemoveAll(folder)
	r.after("removed")
	return err
}

// damagedJournal begins the names of damaged journals, which are kept beside the folders of processes.
const damagedJournal = "damaged-journal-"

// keepDamaged seals that calls are unknown because a journal cannot be read as a whole, and keeps that journal. The act has the id of the process, so that
// there is one if a crash comes before the journal is moved.
func (r *Recorder) keepDamaged(ctx context.Context, id string, about About, unreadable []damaged) error {
	kept := filepath.Join(r.Folder, damagedJournal+id)
	missed, err := r.unknownCalls(ctx, about, unreadable)
	if err != nil {
		return err
	}
	r.Tell.Error("the journal of a recorder that died is damaged: calls in its unreadable lines are unknown, and the log says so; all others are sealed",
		"recorder", about.Recorder, "parts", len(unreadable), "kept", kept)
	if len(missed) > 0 {
		reason := fmt.Sprintf("the journal of the recorder %s, which died, has damaged lines: each may be a call of which nothing else is known", evidence.Abbreviate(cmp.Or(about.Recorder, r.Name)))
		gap := &observed.Event{Event: observed.Gap, Reason: name(reason), Missed: missed}
		if _, err := r.sealEventAs(ctx, id, "", r.Now(), gap); err != nil {
			return err
		}
	}
	r.after("damage sealed")
	return atomicfile.Rename(filepath.Join(r.Folder, id, journalFile), kept)
}

// unknownCalls counts what cannot be read of a journal and may be a call that the log does not know, by agent and the minute of the last call before it.
func (r *Recorder) unknownCalls(ctx context.Context, about About, unreadable []damaged) ([]observed.Missed, error) {
	counts := map[observed.Missed]int64{}
	for _, d := range unreadable {
		if d.ends {
			continue
		}
		if evidence.CheckRecordID(d.recordID) == nil {
			_, has, err := r.Log.RequestOf(ctx, d.recordID)
			if err != nil {
				return nil, err
			}
			if has {
				continue
			}
		}
		agent, since := cmp.Or(d.agent, about.Agent), d.after
		if evidence.CheckName(agent) != nil || len(counts) >= mostMissed-1 { // the rest is counted together
			agent, since = unknownAgent, time.Time{}
		}
		for _, other := range []time.Time{about.Began, r.Now()} { // folders of earlier versions do not say when their process began
			if since.IsZero() {
				since = other
			}
		}
		counts[observed.Missed{Agent: agent, Minute: evidence.FormatTime(since.UTC().Truncate(time.Minute))}]++
	}
	list := make([]observed.Missed, 0, len(counts))
	for m, calls := range counts {
		m.Calls = calls
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b observed.Missed) int {
		return cmp.Or(cmp.Compare(a.Minute, b.Minute), cmp.Compare(a.Agent, b.Agent))
	})
	return list, nil
}

// sealLost seals that a call began and that its end is unknown, unless its record is in the log. The record is of the recorder that saw the call begin, if
// its keys can still sign.
func (r *Recorder) sealLost(ctx context.Context, folder, recorder string, i *intent) error {
	_, has, err := r.Log.RequestOf(ctx, i.RecordID)
	if has || err != nil {
		return err
	}
	a := r.lost(folder, i)
	if recorder != r.Name {
		theirs := a
		theirs.AgentID = recorder
		if theirs.ChainID == eventChain(r.Name) {
			theirs.ChainID = eventChain(recorder)
		}
		if _, err := r.seal(ctx, theirs); err == nil || ctx.Err() != nil {
			return err
		}
		a.Missing = append(a.Missing, "the call began at the recorder "+recorder+", whose keys do not sign any more")
	}
	_, err = r.seal(ctx, a)
	return err
}

func (r *Recorder) lost(folder string, i *intent) observed.Act {
	a := r.actOf(i)
	a.Timestamp, a.Ended = evidence.FormatTime(r.Now()), evidence.LostInCrash
	a.ChainID = cmp.Or(a.ChainID, eventChain(r.Name))
	a.Missing = []string{"how the call ended: the recorder's process ended before; it may not even have been forwarded"}
	a.Request = &observed.Body{ObservedBody: evidence.ObservedBody{Bytes: i.Bytes, SHA256: i.SHA256}}
	r.answerOnDisk(&a, filepath.Join(folder, spoolFolder), i.CallID)
	return a
}

// answerOnDisk adds to a lost call what was on disk of its answer, as it would be kept of a call that broke off there.
func (r *Recorder) answerOnDisk(a *observed.Act, spool, id string) {
	copied, done, err := relay.Left(spool, id)
	if errors.Is(err, fs.ErrNotExist) || err == nil && copied.Bytes == 0 {
		return
	}
	if err != nil {
		a.Missing = append(a.Missing, "response: the copy on disk cannot be read: "+inWords(err))
		return
	}
	defer done() //nolint:errcheck // it was only read
	a.Response, a.Missing = bodyOf("response", copied, nil, true, append(a.Missing, "response: what came after the part that was on disk"))
	mask(a)
}

// State is what a process says of its work while it runs. It is no evidence: the log is.
type State struct {
	Sealed  int64  `json:"sealed"`            // calls, since it began
	Waiting int    `json:"waiting"`           // calls that ended and could not be sealed yet
	Missed  int64  `json:"missed"`            // calls that passed without a record, and are not counted in the log yet
	Trouble string `json:"trouble,omitempty"` // why the log does not seal
}

const stateFile = "state.json"

func (r *Recorder) state() State {
	waiting, why := r.unsealed.state()
	s := State{Sealed: r.sealed.Load(), Waiting: waiting, Missed: r.gaps.count()}
	if why != nil {
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
	file := filepath.Join(r.own, stateFile)
	text, err := json.Marshal(now)
	if err == nil {
		err = os.WriteFile(file+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		r.Tell.Warn("the state of the recorder could not be written; 'jurat doctor --recorders' shows an older one", "error", err)
	}
	return now
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

// readAbout reads what begin wrote. Folders of earlier versions have none: fs.ErrNotExist.
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
