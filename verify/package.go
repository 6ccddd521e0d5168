package verify

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"jurat/aep"
	"jurat/evidence"
	"jurat/timestamp"
	"jurat/verify/trust"
)

// packageFile checks an evidence package. The maker of the archive chose everything in it, including the public key.
func packageFile(file []byte, o Options) *Report {
	p, err := aep.Open(file)
	if err != nil {
		return damaged(Package, "", o, err)
	}
	c := newCheck(o, Package)
	c.pack(p)
	r := c.report()
	r.Records = 1
	r.NotShown = append(slices.Clone(notShown), "that anything in the package but canonical.bin is true of it or was there when it was signed")
	return r
}

// pack checks of a package what applies to records, as far as a package can answer.
func (c *check) pack(p *aep.Package) {
	if evidence.DigestOf(p.Canonical) != p.Hash {
		c.refute(Content, "hash", nil, "hash.sha256 is not the SHA-256 of canonical.bin")
	}
	r := asRecord(p)
	c.Share = c.budget.Turn()
	at := c.packageTime(p, r)
	c.before(r, at)
	c.qualified(r, at)
	c.packageSignature(p, r, at)
	c.packageText(p)
	c.doubt(Order, "no-log", nil, "such a package is in no log, so nothing shows what came before and after it, or what was left out")
	c.noteTimes()
}

// asRecord represents the package as a record, as far as the rules of records apply. The time stamp is over the
// signature.
func asRecord(p *aep.Package) *evidence.Record {
	r := &evidence.Record{Payload: evidence.Payload{Signers: []evidence.SignerInfo{{Algorithm: evidence.RS256, KeyID: p.KeyID}}},
		Signatures: [][]byte{p.Signature}}
	if len(p.Token) > 0 {
		r.Timestamps = []evidence.Timestamp{{Kind: evidence.RFC3161, Token: p.Token}}
	}
	return r
}

// packageTime checks when the signature existed.
func (c *check) packageTime(p *aep.Package, r *evidence.Record) trust.Proof {
	switch {
	case len(p.Token) == 0:
		c.doubt(Time, "pending", nil, "no authority has stamped it: timestamp.tsr is empty")
		return trust.Proof{}
	case stampsHash(p, r):
		c.doubt(Time, "imprint", nil, "the token stamps hash.sha256 and not the signature: it says nothing of when this was signed")
		return trust.Proof{}
	}
	at := c.time(r)
	if !at.Proved() {
		return at
	}
	if rule, err := c.notYetKnown(p, at.Earliest.Time); err != nil {
		c.times = c.times[:len(c.times)-1] // this time is of a number that may be no signature
		c.doubt(Time, rule, nil, "%v", err)
		return trust.Proof{}
	}
	c.times[len(c.times)-1].Record = p.Hash.String()
	return at
}

// notYetKnown checks whether the text and key can have been chosen after the time stamp. The signed and stamped bytes
// of a package do not name its key. So a forger can have any number stamped, and later choose text and key such that
// the number is a valid signature. A key that the reader knew by then cannot be such a key.
func (c *check) notYetKnown(p *aep.Package, stamped time.Time) (rule string, err error) {
	if err := p.CheckStrength(); err != nil {
		return "weak-key", err
	}
	key := c.Trust.Key(p.KeyID)
	const why = "neither signature nor token names a key, so text and key can have been made for a number that was stamped before"
	switch {
	case key == nil:
		return "unknown-key", fmt.Errorf("the trust file has no key %s; %s", p.KeyID, why)
	case key.NotBefore.IsZero():
		return "unknown-key", fmt.Errorf("the trust file does not say since when the key of %s %q was known (not_before); %s", key.Role, key.Name, why)
	case key.NotBefore.After(stamped):
		return "unknown-key", fmt.Errorf("it was stamped at %s, and the key of %s %q is known from %s on; %s", utc(stamped), key.Role, key.Name, utc(key.NotBefore), why)
	}
	return "", nil
}

// stampsHash recognises a token of a later profile, which stamps the hexadecimal digits of the hash. It proves that
// the text existed; the signature can be later.
func stampsHash(p *aep.Package, r *evidence.Record) bool {
	token, err := timestamp.Parse(p.Token)
	if err != nil {
		return false
	}
	noTrust := timestamp.Options{Roots: []*x509.Certificate{}}
	if _, err := token.Verify(r.Imprint(), noTrust); !errors.Is(err, timestamp.ErrImprint) {
		return false
	}
	_, err = token.Verify(sha256.Sum256([]byte(hex.EncodeToString(p.Hash[:]))), noTrust)
	return err == nil || trust.Uncheckable(err)
}

// packageSignature checks who signed, and whether they signed canonical.bin.
func (c *check) packageSignature(p *aep.Package, r *evidence.Record, at trust.Proof) {
	of := []Guarantee{Content, Authentication, NonRepudiation}
	if len(p.Signature) == 0 {
		for _, g := range of {
			c.doubt(g, "unsigned", nil, "it is not signed: signature.sig is empty")
		}
		return
	}
	null, err := p.CheckSignature()
	if err != nil {
		for _, g := range of {
			c.refute(g, "signature", nil, "signature.sig: %v", err)
		}
		return
	}
	key := c.Trust.Key(p.KeyID)
	weak := p.CheckStrength()
	if weak != nil || key == nil {
		for _, g := range of {
			if weak != nil {
				c.doubt(g, "weak-key", nil, "%v", weak)
				continue
			}
			c.doubt(g, "unknown-key", nil, "%s", c.unknownPackageKey(p))
		}
		c.second(p, r, nil)
		return
	}
	c.party([]trust.Identified{*key.Identified()})
	c.notes[Content] = "the signature is valid over canonical.bin" + textOf(p) + formOf(null)
	c.notes[Authentication] = fmt.Sprintf("signed with the key that the trust file gives for %s %q; no name in the package is signed, so none was compared with it",
		key.Role, key.Name)
	c.notes[NonRepudiation] = "the actor keeps its key itself"
	if key.Role != evidence.RoleAgent {
		c.refute(Authentication, "actor", nil, "such a package holds an agent's statement, and it is signed with the key of %s %q", key.Role, key.Name)
	} else {
		c.valid(r, key, at)
	}
	c.notRevoked(r, key, at)
	c.second(p, r, key)
	c.together(r, key, at)
	c.custody(r, key)
}

func textOf(p *aep.Package) string {
	switch p.Binding() {
	case aep.BindsClaim:
		return ", which is the text of response.txt and a claim about it"
	case aep.BindsMetadata:
		return ", which is the text of response.txt and metadata.json"
	}
	return ", which is the text of response.txt"
}

func formOf(null bool) string {
	if null {
		return ""
	}
	return "; its DigestInfo lacks the NULL of RFC 8017, which other programs refuse"
}

func (c *check) unknownPackageKey(p *aep.Package) string {
	if c.options.Trust == nil {
		return "no trust file was given, so no key is trusted; the key inside the package proves nothing"
	}
	return fmt.Sprintf("the trust file has no key %s; the same key inside the package proves nothing", p.KeyID)
}

// second checks the second signature if the reader knows its key, and adds it to the record's signers if it is valid.
// No signed byte names the second signature, so anyone can add or remove it. Only the trust file can demand it
// (with).
//
// The token is over the first signature, so nothing shows when the second was made.
func (c *check) second(p *aep.Package, r *evidence.Record, first *trust.Key) {
	s := p.Second
	if s == nil {
		return
	}
	if err := s.Readable(); err != nil {
		c.doubt(Enclosures, "algorithm", nil, "the second signature cannot be checked: %v", err)
		return
	}
	key := c.Trust.Key(s.KeyID)
	switch {
	case key == nil:
		c.doubt(Enclosures, "unknown-key", nil, "the trust file lacks the key %s, which is needed to check the second signature", s.KeyID)
	case p.CheckSecond() != nil:
		for _, g := range []Guarantee{Authentication, NonRepudiation, Enclosures} {
			c.refute(g, "signature", nil, "the second signature was not made with its key over canonical.bin or its hash")
		}
	case first != nil && (key.Role != first.Role || key.Name != first.Name):
		c.refute(Authentication, "actor", nil, "the second signature was made with the key of %s %q, the first with that of %s %q",
			key.Role, key.Name, first.Role, first.Name)
	default:
		c.valid(r, key, trust.Proof{})
		c.notRevoked(r, key, trust.Proof{})
		r.Payload.Signers = append(r.Payload.Signers, evidence.SignerInfo{Algorithm: evidence.MLDSA65, KeyID: s.KeyID})
	}
}

// packageText checks which parts of the package the signed bytes cover.
func (c *check) packageText(p *aep.Package) {
	c.notes[Enclosures] = "all that lies in the package is signed"
	binding := p.Binding()
	if binding == aep.BindsNothing {
		c.doubt(Content, "unbound", nil, "canonical.bin, which was signed, does not match response.txt in any known form: do not rely on response.txt")
	}
	if binding != aep.BindsMetadata {
		c.doubt(Enclosures, "unbound", nil, "no signature covers metadata.json: anyone can have written it")
	}
	for _, name := range p.Others {
		c.doubt(Enclosures, "unbound", nil, "no signature covers %s: anyone can have added it", name)
	}
}
