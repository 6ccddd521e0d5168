package openssl

import (
	"encoding/hex"
	"errors"
	"fmt"

	"jurat/evidence"
	"jurat/timestamp"
)

// renewed writes an evidence record and its tokens. Openssl can check the tokens, but not how the stamped imprints follow from the record:
// it gets the imprints that this function computed.
func renewed(r *evidence.Record, i int, put Put) ([]command, error) {
	e, err := timestamp.ParseEvidenceRecord(r.Timestamps[i].Token)
	if err != nil {
		return nil, fmt.Errorf("time stamp %d: %w", i, err)
	}
	group := timestamp.Group{Required: [][]byte{joined(r), r.Canonical()}}
	for _, stamp := range r.Timestamps {
		if stamp.Kind == evidence.RFC3161 {
			group.Optional = append(group.Optional, stamp.Token)
		}
	}
	links, _, err := e.Links(group)
	if err != nil {
		return nil, fmt.Errorf("time stamp %d: %w", i, err)
	}
	err = put(numbered("evidence-record", i, ".der"), r.Timestamps[i].Token)
	var commands []command
	for n, l := range links {
		response, wrapErr := timestamp.MarshalResponse(l.DER)
		name := fmt.Sprintf("evidence-record-%d-token-%d.tsr", i+1, n+1)
		err = errors.Join(err, wrapErr, put(name, response))
		line, lineErr := TokenCommand("-digest "+hex.EncodeToString(l.Imprint.Sum), name, l.DER)
		err, commands = errors.Join(err, lineErr), append(commands, command{line: line})
	}
	return commands, err
}
