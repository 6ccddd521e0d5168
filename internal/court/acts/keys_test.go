package acts_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/court/acts"
	"jurat/internal/court/trial"
	"jurat/internal/log/access"
	"jurat/internal/log/installation"
	"jurat/internal/log/keys"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/jury"
)

// TestKeysChangedElsewhere: a process that has sealed with an actor's key seals with the next one after another process has rotated it, and says that there is
// none after another process has retired it. The log has each act once.
func TestKeysChangedElsewhere(t *testing.T) {
	config := installation.Config{Dir: filepath.Join(t.TempDir(), "data")}
	must.Do(t, installation.Create(t.Context(), config))
	open := func() *installation.Installation {
		i := must.Get(installation.Open(t.Context(), config))(t)
		t.Cleanup(func() {
			must.Want(t, i.Close(), nil)
		})
		return i
	}
	here, there := open(), open()
	on := acts.New(acts.Config{Ledger: here.Ledger, Keys: here.Keys, Disclose: here.Apart.Disclose, Now: time.Now})
	seal := func() (*evidence.Record, error) {
		draft := must.Get(evidence.ParseDraft([]byte(`{"agent_id":"a","request_id":"r","timestamp":"2026-01-31T16:15:00Z","model":"m","model_version":"v","prompt":"p","response":"r","parameters":{}}`)))(t)
		done, err := on.Seal(t.Context(), acts.Order{By: acts.Operator, Apart: []string{"/prompt"}}, draft)
		if err != nil {
			return nil, err
		}
		return done.Record, nil
	}
	why := keys.Why{By: "me", Reason: "test"}
	before := must.Get(seal())(t)
	must.Do(t, there.Keys.Rotate(t.Context(), evidence.RoleAgent, "a", "", nil, why))
	after := must.Get(seal())(t)
	must.Hold(t, after.Payload.Signers[0] != before.Payload.Signers[0], "the key that was rotated elsewhere still signs")
	must.Do(t, there.Keys.Retire(t.Context(), after.Payload.Signers[0].KeyID, why))
	must.Fail(t, keys.ErrNoKey)(seal())
	for _, r := range []*evidence.Record{before, after} {
		logged, err := there.Ledger.Record(t.Context(), r.Payload.RecordID)
		must.Hold(t, err == nil && logged.Digest == r.Digest, "record %s: %v", r.Payload.RecordID, err)
	}
	events := must.Get(there.Ledger.Chain(t.Context(), operator.KeysChain))(t)
	head := must.Get(there.Ledger.Checkpoint(t.Context()))(t)
	size, err := there.Ledger.SizeAt(t.Context(), head)
	must.Hold(t, err == nil && size == int64(2+len(events)), "the log has %d records, %d of them about keys: %v", size, len(events), err)
}

// stale knows of no keys to seal with, until the log is read.
type stale struct {
	acts.Keys
	err error
}

func (s stale) ToSeal(context.Context, evidence.Role, string) ([]evidence.Signer, error) {
	return nil, s.err
}

// TestKeysMadeElsewhere: what this process knows of an actor's keys may be too old to seal with. Then the log is asked, once, before the act is refused.
func TestKeysMadeElsewhere(t *testing.T) {
	config := installation.Config{Dir: filepath.Join(t.TempDir(), "data")}
	must.Do(t, installation.Create(t.Context(), config))
	i := must.Get(installation.Open(t.Context(), config))(t)
	t.Cleanup(func() {
		must.Want(t, i.Close(), nil)
	})
	for _, problem := range []error{keys.ErrNoKey, keys.ErrEnded, keys.ErrLost, keys.ErrSecondKey, keys.ErrOwner} {
		on := acts.New(acts.Config{Ledger: i.Ledger, Keys: stale{i.Keys, fmt.Errorf("key: %w", problem)}, Disclose: i.Apart.Disclose, Now: time.Now})
		draft := must.Get(evidence.ParseDraft([]byte(`{"agent_id":"a","request_id":"r","timestamp":"2026-01-31T16:15:00Z","model":"m","model_version":"v","prompt":"p","response":"r","parameters":{}}`)))(t)
		want := error(nil)
		if problem == keys.ErrOwner {
			want = problem
		}
		_, err := on.Seal(t.Context(), acts.Order{By: acts.Operator}, draft)
		must.Hold(t, errors.Is(err, want), "%v: %v", problem, err)
	}
}

// party is a person with one role.
type party struct {
	name string
	role access.Role
}

func (p party) Name() string              { return p.name }
func (p party) Has(role access.Role) bool { return role == p.role }

// private says that the operator has made nothing public.
type private struct{}

func (private) Public(context.Context, access.What) (bool, error) { return false, nil }

// TestMayManage checks who may cancel and resume a trial: its submitter and the operator, and no other reader of it.
func TestMayManage(t *testing.T) {
	h := jurattest.New(t)
	jurors, _ := jurattest.Panel()
	done, err := trial.Run(t.Context(), trial.Config{Ledger: h.Ledger, Keys: h.Keys, Now: h.Now, Submitter: "sam",
		Settings: jurattest.Settings(jury.MajorityVote), Jurors: jurors}, jurattest.Case(t))
	must.Do(t, err)
	on := acts.New(acts.Config{Ledger: h.Ledger, Opened: private{}, Now: time.Now})
	for _, tt := range []struct {
		by   acts.Party
		want error // nil: may
	}{
		{acts.Operator, nil}, // at the keyboard
		{party{"olga", access.Operator}, nil},
		{party{"sam", access.Submitter}, nil},
		{party{"eve", access.Submitter}, api.ErrForbidden},
		{party{"sam", access.Reviewer}, api.ErrForbidden}, // reads the trial; the role that submits was taken away
		{party{"rita", access.Reviewer}, api.ErrForbidden},
		{party{"ada", access.Auditor}, api.ErrForbidden},
		{party{"sam", access.Agent}, api.ErrForbidden},
		{party{}, api.ErrSignIn}, // a stranger
	} {
		err := on.MayManage(t.Context(), tt.by, done.ID)
		must.Hold(t, (tt.want != nil || err == nil) && (tt.want == nil || errors.Is(err, tt.want)), "%+v: %v, want %v", tt.by, err, tt.want)
		must.Equal(t, acts.Manages(tt.by, "sam"), (tt.want == nil))
	}
}

// TestNobodyDecidesOnWhatTheyWereSeenToDo: the agent whose act a recorder saw is not its reviewer.
func TestNobodyDecidesOnWhatTheyWereSeenToDo(t *testing.T) {
	h := jurattest.New(t)
	seen := h.Seal(t, evidence.Payload{ActionType: evidence.ObservedCall, AgentID: "gate", RequestID: "r", Timestamp: evidence.FormatTime(h.Now()),
		Observed: &evidence.Observed{Agent: "desk", Began: evidence.FormatTime(h.Now()), Ended: evidence.Complete, Fidelity: evidence.Parsed, Judged: evidence.JudgedAgent, Protocol: "other/1", Vantage: evidence.InProcess}})
	on := acts.New(acts.Config{Ledger: h.Ledger, Opened: private{}, Now: time.Now})
	for reviewer, want := range map[string]error{"desk": api.ErrOwnWork, "gate": api.ErrOwnWork, "noa": nil} {
		err := on.NotOwnWork(t.Context(), reviewer, seen.Payload.RecordID)
		must.Hold(t, errors.Is(err, want), "%s: %v, want %v", reviewer, err, want)
	}
}
