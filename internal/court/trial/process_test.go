//go:build unix

package trial_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"jurat/evidence"
	"jurat/internal/court/subject"
	"jurat/internal/court/trial"
	"jurat/internal/log/installation"
	"jurat/internal/log/lock"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/jury"
	"jurat/verify"
)

// If childFolder is set, this test binary is a process that conducts a trial in that installation. It resumes the trial
// in childTrial if that is set. As soon as childActs acts are sealed, it kills itself with SIGKILL.
const childFolder, childTrial, childActs = "JURAT_TEST_FOLDER", "JURAT_TEST_TRIAL", "JURAT_TEST_ACTS"

const (
	card = `{"name":"Parcel agent","description":"Tracks parcels.","version":"1.0.0","url":"https://parcels.example/a2a",
		"protocolVersion":"0.3.0","skills":[{"id":"track","name":"Track","description":"Says where a parcel is.","tags":["parcel"]}]}`
	conversation = `[{"role":"user","content":"Where is parcel 17?"},{"role":"assistant","content":"It is in Kassel."}]`
)

func TestMain(m *testing.M) {
	if folder := os.Getenv(childFolder); folder != "" {
		if err := child(folder, os.Getenv(childTrial), os.Getenv(childActs)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func child(folder, id, acts string) error {
	var last int64
	if _, err := fmt.Sscan(acts, &last); err != nil {
		return err
	}
	ctx := context.Background()
	i, err := installation.Open(ctx, installation.Config{Dir: folder})
	if err != nil {
		return err
	}
	defer i.Close()
	jurors, judge := jurattest.Panel()
	for n, j := range jurors {
		jurors[n] = counting{j, folder}
	}
	config := trial.Config{Ledger: i.Ledger, Keys: i.Keys, Locks: i.Locks, Settings: jurattest.Settings(jury.FinalJudge),
		Jurors: jurors, Judge: counting{judge, folder}, OnEvent: func(e trial.Event) {
			if e.Head().Seq == last {
				if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
					panic(err)
				}
				select {}
			}
		}}
	if id == "" {
		on, err := subject.New([]byte(card), []byte(conversation))
		if err != nil {
			return err
		}
		_, err = trial.Run(ctx, config, on)
		return err
	}
	r, err := trial.Reopen(ctx, i.Ledger, id)
	if err != nil {
		return err
	}
	_, err = trial.Resume(ctx, config, r.ID, nil)
	return err
}

// counting writes each finished call to a file that all processes share.
type counting struct {
	jury.Juror
	folder string
}

func (c counting) note(b jury.Brief) error {
	file, err := os.OpenFile(callsFile(c.folder), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(file, "%s %s %d\n", b.Seat.JurorID, b.Phase, b.RoundNumber)
	return errors.Join(err, file.Close())
}

func callsFile(folder string) string { return folder + ".calls" }

func (c counting) Answer(ctx context.Context, b jury.Brief) (jury.Answer, error) {
	a, err := c.Juror.Answer(ctx, b)
	return a, errors.Join(err, c.note(b))
}

// run starts such a process.
func run(t *testing.T, folder, id string, acts int) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	var said bytes.Buffer
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), childFolder+"="+folder, childTrial+"="+id, childActs+"="+fmt.Sprint(acts))
	c.Stderr = &said
	must.Do(t, c.Start())
	return c, &said
}

func killed(err error) bool {
	var ended *exec.ExitError
	if !errors.As(err, &ended) {
		return false
	}
	status, ok := ended.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

func house(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "data")
	must.Do(t, installation.Create(t.Context(), installation.Config{Dir: folder}))
	return folder
}

// stored returns the records of a trial in the log, as bytes, and the reopened trial.
func stored(t *testing.T, folder, id string) (*trial.Trial, [][]byte) {
	t.Helper()
	i := must.Get(installation.Open(t.Context(), installation.Config{Dir: folder}))(t)
	defer i.Close()
	if id == "" {
		list, err := trial.ListUnfinished(t.Context(), i.Ledger)
		must.Need(t, err == nil && len(list) == 1, "%v, %v", list, err)
		id = list[0].ID
	}
	r := must.Get(trial.Reopen(t.Context(), i.Ledger, id))(t)
	var docs [][]byte
	for _, record := range r.Records {
		doc := must.Get(record.Marshal())(t)
		docs = append(docs, doc)
	}
	return r, docs
}

func wantProved(t *testing.T, folder string, records []*evidence.Record) {
	t.Helper()
	i := must.Get(installation.Open(t.Context(), installation.Config{Dir: folder}))(t)
	defer i.Close()
	must.Want(t, i.Vouch(t.Context(), records...), nil)
	bundle := must.Get(i.Ledger.Prove(t.Context(), records...))(t)
	trust := must.Get(i.Trust(t.Context()))(t)
	report := verify.Bundle(bundle, verify.Options{Trust: trust})
	must.Hold(t, report.Outcome == verify.Proved, "the case file is %s: %+v", report.Outcome, report)
}

func calls(t *testing.T, folder string) map[string]int {
	t.Helper()
	doc := must.Get(os.ReadFile(callsFile(folder)))(t)
	counts := map[string]int{}
	for line := range strings.Lines(string(doc)) {
		counts[strings.TrimSpace(line)]++
	}
	return counts
}

// TestKilledAtEveryAct kills the process at each act of a trial. The next process knows only the log. It resumes the
// trial, seals one more act and is killed as well.
func TestKilledAtEveryAct(t *testing.T) {
	folder := house(t)
	var id string
	var before [][]byte
	mayRepeat := map[string]int{} // how many answers may have been lost
	for acts := 1; ; acts++ {
		process, said := run(t, folder, id, acts)
		err := process.Wait()
		must.Need(t, killed(err), "act %d: %v: %s", acts, err, said)
		r, now := stored(t, folder, id)
		id = r.ID
		must.Need(t, len(now) == acts, "%d acts are sealed, want %d", len(now), acts)
		for i := range before {
			must.Hold(t, bytes.Equal(before[i], now[i]), "after act %d record %d has changed", acts, i)
		}
		before = now
		if r.Over {
			break
		}
		for _, juror := range r.Waiting() {
			mayRepeat[fmt.Sprintf("%s %s %d", juror, r.State().Phase, r.State().RoundNumber)]++
		}
	}
	must.Hold(t, len(before) >= 15, "a trial of only %d acts", len(before))
	for call, times := range calls(t, folder) {
		must.Hold(t, times <= 1+mayRepeat[call], "%s was asked %d times, but its answer was lost only %d times", call, times, mayRepeat[call])
	}
	r, _ := stored(t, folder, id)
	wantProved(t, folder, r.Records)
}

// TestTwoProcessesResume: two processes resume the same trial at the same time. One conducts it. The other returns an
// error that says why it does not, or finds the trial finished.
func TestTwoProcessesResume(t *testing.T) {
	folder := house(t)
	process, said := run(t, folder, "", 3)
	if err := process.Wait(); !killed(err) {
		t.Fatalf("%v: %s", err, said)
	}
	r, _ := stored(t, folder, "")
	lost := len(r.Waiting())

	i := must.Get(installation.Open(t.Context(), installation.Config{Dir: folder}))(t)
	defer i.Close()
	_, release, err := i.Locks.Lock(t.Context(), r.ID)
	must.Do(t, err)
	process, said = run(t, folder, r.ID, -1)
	err = process.Wait()
	must.Hold(t, err != nil && strings.Contains(said.String(), lock.ErrTaken.Error()), "while another process works on the trial: %v: %s", err, said)
	_, now := stored(t, folder, r.ID)
	must.Hold(t, len(now) == 3, "there are %d acts", len(now))
	release()

	first, firstSaid := run(t, folder, r.ID, -1)
	second, secondSaid := run(t, folder, r.ID, -1)
	for _, p := range []struct {
		*exec.Cmd
		said *bytes.Buffer
	}{{first, firstSaid}, {second, secondSaid}} {
		err := p.Wait()
		refused := strings.Contains(p.said.String(), lock.ErrTaken.Error()) || strings.Contains(p.said.String(), trial.ErrMoved.Error())
		must.Hold(t, err == nil || refused, "%v: %s", err, p.said)
	}
	done, _ := stored(t, folder, r.ID)
	must.Hold(t, done.Over, "no process finished the trial")
	wantProved(t, folder, done.Records)
	repeated := 0
	for _, times := range calls(t, folder) {
		repeated += times - 1
	}
	must.Hold(t, repeated <= lost, "%d calls were repeated, but only %d answers were lost", repeated, lost)
}
