package client

import (
	"crypto/rand"
	"fmt"

	"jurat/evidence"
	"jurat/property"
	"jurat/property/proving"
)

// Prove proves a statement about a member of a record that discloses its value, and adds the proof to the record. Nothing leaves the
// machine, and the disclosure stays where it is: withhold it ('evidence.Withhold') before you give the record away. The statement
// needs its form and what belongs to that; format, kind and members are filled in. proving.Parse reads what people write.
//
// The errors include proving.ErrUnprovable, proving.ErrWithheld, property.ErrFalse and evidence.ErrDisclosure.
func Prove(s property.Statement, m proving.Member) error {
	proof, err := proving.Prove(s, m, rand.Reader)
	if err == nil {
		err = proving.Add(m.Record, proof)
	}
	if err != nil {
		return fmt.Errorf("proving a property: %w", err)
	}
	return nil
}

// Disclose adds to a record that came back from a server the values that its owner kept. It returns an error, and changes nothing, if they are
// not those of this record.
func Disclose(sealed, kept *evidence.Record) error {
	with := *sealed
	with.Disclosures = kept.Disclosures
	if err := with.CheckDisclosures(); err != nil {
		return err
	}
	sealed.Disclosures = kept.Disclosures
	return nil
}
