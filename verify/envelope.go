package verify

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"jurat/dsse"
	"jurat/evidence"
	"jurat/verify/trust"
)

// envelope checks a DSSE envelope: who put the records into it, and the records themselves.
func envelope(file []byte, o Options) (*Report, error) {
	e, err := dsse.Parse(file)
	if err != nil {
		return unopened(OneRecord, o, err), nil
	}
	inside, err := e.File()
	if errors.Is(err, dsse.ErrOther) {
		return nil, fmt.Errorf("%w: %w", ErrNotOurs, err)
	}
	if err != nil {
		return unopened(OneRecord, o, err), nil
	}
	o.envelope = dsseEnvelope{e}
	if evidence.BeginsAsBundle(inside) {
		return bundleFrom(bytes.NewReader(inside), o)
	}
	r, err := evidence.Open(inside)
	if err != nil {
		return unopened(OneRecord, o, err), nil
	}
	return record(r, o), nil
}

// An enclosure is what records came in. It checks who put them in.
type enclosure interface{ check(c *check) }

type dsseEnvelope struct{ *dsse.Envelope }

func (e dsseEnvelope) check(c *check) { c.exporter(e.Envelope) }

// unopened is the report on a damaged envelope.
func unopened(kind Kind, o Options, err error) *Report {
	r := damaged(kind, "", o, err)
	r.Guarantees = append(r.Guarantees, Finding{Guarantee: Envelope, Status: NotProved, Reason: "the file cannot be opened"})
	return r
}

// exporter checks who put the records into the envelope. Every signature that names one of the reader's keys must be
// made with that key, and one of these keys must be the operator's.
func (c *check) exporter(e *dsse.Envelope) {
	c.notes[Envelope] = "the operator signed the envelope; only the records show who said what"
	signed, named := 0, map[evidence.KeyID]bool{}
	for i, s := range e.Signatures {
		key := c.keyNamed(s.KeyID)
		if key == nil {
			continue
		}
		info := evidence.SignerInfo{Algorithm: key.Algorithm, KeyID: key.KeyID}
		if err := evidence.CheckSignature(key.Public(), info, e.Signed(), s.Signature); err != nil {
			c.refute(Envelope, "signature", nil, "signature %d of the envelope was not made with the key that it names", i)
			continue
		}
		signed++
		named[key.KeyID] = true
		if key.Role != evidence.RoleOperator {
			c.refute(Envelope, "actor", nil, "operators sign envelopes, and this one is signed with the key of %s %q", key.Role, key.Name)
		} else {
			c.exporterKey(key)
		}
	}
	if signed == 0 && c.worst(Envelope) == nil {
		c.doubt(Envelope, "unknown-key", nil, "no key of the trust file signed the envelope")
	}
	c.exportedTogether(named)
}

func (c *check) keyNamed(id string) *trust.Key {
	i := slices.IndexFunc(c.Trust.Keys, func(k trust.Key) bool { return k.KeyID.String() == id })
	if i < 0 {
		return nil
	}
	return &c.Trust.Keys[i]
}

// exporterKey checks whether the key was good when the envelope was signed. An envelope has no time that an authority vouches for.
func (c *check) exporterKey(key *trust.Key) {
	switch {
	case !key.Revoked.IsZero():
		c.doubt(Envelope, "revoked", nil, "the key is revoked from %s on, and nothing shows when the envelope was signed", utc(key.Revoked))
	case !key.NotAfter.IsZero():
		c.doubt(Envelope, "validity", nil, "the key was valid only until %s, and nothing shows when the envelope was signed", utc(key.NotAfter))
	}
}

// exportedTogether checks whether all keys signed that the trust file requires besides the first ones.
func (c *check) exportedTogether(signed map[evidence.KeyID]bool) {
	for i := range c.Trust.Keys {
		key := &c.Trust.Keys[i]
		for _, id := range key.With {
			switch {
			case !signed[key.KeyID] || signed[id]:
			case key.WithFrom.IsZero():
				c.refute(Envelope, "second-signature", nil, "the key of %s %q signs only together with the key %s, which did not sign", key.Role, key.Name, id)
			default:
				c.doubt(Envelope, "second-signature", nil, "the key %s must sign, too, from %s on; it did not, and nothing shows when the envelope was signed",
					id, utc(key.WithFrom))
			}
		}
	}
}
