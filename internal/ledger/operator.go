package ledger

import (
	"context"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/keys"
)

// Keys returns the keys that sign for an actor, all of them and in their order.
type Keys interface {
	Signers(ctx context.Context, role evidence.Role, name string) ([]evidence.Signer, error)
}

// An Operator seals the operator's own acts, each with the operator's keys.
type Operator struct {
	Ledger *Ledger
	Keys   Keys
}

// OperatorAct completes the payload of an operator's act with its body. It returns an error for an act that its
// readers would refuse.
func OperatorAct[B operator.Body](p evidence.Payload, body B) (evidence.Payload, error) {
	response, err := operator.Encode(body)
	if err != nil {
		return p, err
	}
	p.AgentID, p.Response = OperatorName, response
	return p, operator.Check(&p)
}

// Seal seals one act. It keeps the act's time and record id, or sets new ones. It sets no position in a chain. apart lists members to seal
// apart. Its errors are those of Keys, of evidence.NewDraft and of Ledger.Seal.
func (o Operator) Seal(ctx context.Context, p evidence.Payload, apart ...string) (*evidence.Record, error) {
	signers, err := o.signers(ctx)
	if err != nil {
		return nil, err
	}
	draft, err := evidence.NewDraft(p)
	if err != nil {
		return nil, err
	}
	return o.Ledger.Seal(ctx, draft.SealingApart(apart...), signers)
}

// SealNext is Ledger.SealNext. It also returns the errors of Keys.
func (o Operator) SealNext(ctx context.Context, chain string, next func(chain []*evidence.Record) ([]evidence.Payload, error)) ([]*evidence.Record, error) {
	signers, err := o.signers(ctx)
	if err != nil {
		return nil, err
	}
	return o.Ledger.SealNext(ctx, chain, signers, next)
}

// ChangeKeys seals the key events that plan returns for the current state of keys, in one transaction. If another
// caller changes keys meanwhile, it calls plan again. It returns plan's error, and the errors of SealNext.
func (o Operator) ChangeKeys(ctx context.Context, plan func(*keys.History) ([]operator.KeyEventBody, error)) error {
	_, err := o.SealNext(ctx, operator.KeysChain, func(chain []*evidence.Record) ([]evidence.Payload, error) {
		history, err := keys.ReadHistory(chain)
		if err != nil {
			return nil, err
		}
		events, err := plan(history)
		if err != nil {
			return nil, err
		}
		acts := make([]evidence.Payload, len(events))
		for n, e := range events {
			if acts[n], err = OperatorAct(evidence.Payload{ActionType: evidence.KeyEvent}, e); err != nil {
				return nil, err
			}
		}
		return acts, nil
	})
	return err
}

// SealLast is Ledger.SealLast, in the chain that the act names. It also returns the errors of Keys.
func (o Operator) SealLast(ctx context.Context, p evidence.Payload) error {
	signers, err := o.signers(ctx)
	if err != nil {
		return err
	}
	_, err = o.Ledger.SealLast(ctx, p.ChainID, signers, p)
	return err
}

// Settle is Ledger.Settle. It also returns the errors of Keys.
func (o Operator) Settle(ctx context.Context, late []LateStamp) (int, error) {
	signers, err := o.signers(ctx)
	if err != nil {
		return 0, err
	}
	return o.Ledger.Settle(ctx, late, signers)
}

// Anchor is Ledger.Anchor. It also returns the errors of Keys.
func (o Operator) Anchor(ctx context.Context, body operator.CheckpointStampBody) (*evidence.Record, error) {
	signers, err := o.signers(ctx)
	if err != nil {
		return nil, err
	}
	return o.Ledger.Anchor(ctx, body, signers)
}

func (o Operator) signers(ctx context.Context) ([]evidence.Signer, error) {
	return o.Keys.Signers(ctx, evidence.RoleOperator, OperatorName)
}
