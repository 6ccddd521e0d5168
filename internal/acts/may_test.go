package acts_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/access"
	"jurat/internal/acts"
	"jurat/internal/trial"
	"jurat/jurattest"
	"jurat/jury"
)

// party is a person with one role.
type party struct {
	name string
	role access.Role
}

func (p party) Name() string              { return p.name }
func (p party) Has(role access.Role) bool { return role == p.role }

// private says that the operator has made nothing public.
type private struct{}

func (private) Public(context.Context, string) (bool, error)       { return false, nil }
func (private) PublicRecord(context.Context, string) (bool, error) { return false, nil }
func (private) PublicAgent(context.Context, string) (bool, error)  { return false, nil }

// TestMayManage checks who may cancel and resume a trial: its submitter and the operator, and no other reader of it.
func TestMayManage(t *testing.T) {
	h := jurattest.New(t)
	jurors, _ := jurattest.Panel()
	done, err := trial.Run(t.Context(), trial.Config{Ledger: h.Ledger, Keys: h.Keys, Now: h.Now, Submitter: "sam",
		Settings: jurattest.Settings(jury.MajorityVote), Jurors: jurors}, jurattest.Case(t))
	if err != nil {
		t.Fatal(err)
	}
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
		if tt.want == nil && err != nil || tt.want != nil && !errors.Is(err, tt.want) {
			t.Errorf("%+v: %v, want %v", tt.by, err, tt.want)
		}
		if manages := acts.Manages(tt.by, "sam"); manages != (tt.want == nil) {
			t.Errorf("%+v: the page of the trial offers it: %t", tt.by, manages)
		}
	}
}

// TestNobodyDecidesOnWhatTheyWereSeenToDo: the agent whose act a recorder saw is not its reviewer.
func TestNobodyDecidesOnWhatTheyWereSeenToDo(t *testing.T) {
	h := jurattest.New(t)
	seen := h.Seal(t, evidence.Payload{ActionType: evidence.ObservedCall, AgentID: "gate", RequestID: "r", Timestamp: evidence.FormatTime(h.Now()),
		Observed: &evidence.Observed{Agent: "desk", Began: evidence.FormatTime(h.Now()), Ended: evidence.Complete, Fidelity: evidence.Parsed, Judged: evidence.JudgedAgent, Protocol: "other/1", Vantage: evidence.InProcess}})
	on := acts.New(acts.Config{Ledger: h.Ledger, Opened: private{}, Now: time.Now})
	for reviewer, want := range map[string]error{"desk": api.ErrOwnWork, "gate": api.ErrOwnWork, "noa": nil} {
		if err := on.NotOwnWork(t.Context(), reviewer, seen.Payload.RecordID); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", reviewer, err, want)
		}
	}
}
