package aep

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
)

// Binding says which members of a package the signed bytes contain.
type Binding int

const (
	BindsNothing  Binding = iota // canonical.bin is not made of response.txt in any known way
	BindsText                    // made of response.txt
	BindsClaim                   // made of response.txt and a claim about it, which is signed, too
	BindsMetadata                // made of response.txt and metadata.json
)

// Binding finds out how canonical.bin was made from the other members.
func (p *Package) Binding() Binding {
	plain := normal(p.Response)
	if bytes.Equal(p.Canonical, plain) || bytes.Equal(p.Canonical, p.Response) {
		return BindsText
	}
	if claim, ok := bytes.CutPrefix(p.Canonical, append(plain, '\n')); ok && isClaim(claim) {
		return BindsClaim
	}
	if form, err := evidence.Canonical(p.Metadata); err == nil {
		if rest, ok := bytes.CutPrefix(p.Canonical, p.Response); ok && bytes.Equal(rest, append([]byte("\n"), form...)) {
			return BindsMetadata
		}
	}
	return BindsNothing
}

// normal is the canonical form of a text in these packages, without Unicode normalisation: lines end with a line feed
// and have no control characters and spaces around them. Of consecutive blank lines one is left, and none at the end.
func normal(text []byte) []byte {
	const blanks = "\x00\x01\x02\x03\x04\x05\x06\x07\x08\t\n\x0b\x0c\r\x0e\x0f" +
		"\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f "
	ends := strings.NewReplacer("\r\n", "\n", "\r", "\n")
	var lines []string
	for line := range strings.SplitSeq(ends.Replace(string(text)), "\n") {
		line = strings.Trim(line, blanks)
		if line == "" && len(lines) > 0 && lines[len(lines)-1] == "" {
			continue
		}
		lines = append(lines, line)
	}
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if len(lines) == 0 {
		return nil
	}
	return []byte(strings.Join(lines, "\n") + "\n")
}

// isClaim recognises the object that some packages have after the text. It ends with its brace. A text in canonical
// form never does.
func isClaim(doc []byte) bool {
	if !bytes.HasPrefix(doc, []byte("{")) || !bytes.HasSuffix(doc, []byte("}")) {
		return false
	}
	var claim struct {
		Claim         *string        `json:"claim"`
		Confidence    jsontext.Value `json:"confidence"`
		Model         *string        `json:"model"`
		PolicyVersion *string        `json:"policy_version"`
	}
	err := json.Unmarshal(doc, &claim, json.RejectUnknownMembers(true))
	return err == nil && claim.Claim != nil && claim.Confidence.Kind() == '0' && claim.Model != nil && claim.PolicyVersion != nil
}
