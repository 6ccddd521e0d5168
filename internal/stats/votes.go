package stats

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A Choice is a vote: a JSON string, number or boolean in canonical form. The zero Choice means none.
type Choice string

// MarshalJSONTo implements json.MarshalerTo. It writes the zero Choice as null. Its errors are those of enc.
func (c Choice) MarshalJSONTo(enc *jsontext.Encoder) error {
	if c == "" {
		return enc.WriteToken(jsontext.Null)
	}
	return enc.WriteValue(jsontext.Value(c))
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom. It refuses objects, arrays and numbers without a canonical form.
func (c *Choice) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	v, err := dec.ReadValue()
	if err != nil {
		return err
	}
	switch v.Kind() {
	case 'n':
		*c = ""
		return nil
	case '{', '[':
		return errors.New("want a string, a number, a boolean or null")
	}
	v = v.Clone()
	if err := v.Canonicalize(); err != nil {
		return err
	}
	*c = Choice(v)
	return nil
}

// String returns the choice in readable form.
func (c Choice) String() string {
	if c == "" {
		return "none"
	}
	if text, err := jsontext.AppendUnquote(nil, c); err == nil {
		return string(text)
	}
	return string(c)
}

// A Ballot holds all votes on one item.
type Ballot struct {
	Item  string
	Label Choice            // the right answer; none: unknown
	Votes map[string]Choice // by juror; none: the juror abstained
	Sure  map[string]float64
	Made  map[string]Made // by juror
}

// line is a vote in a line of the file.
type line struct {
	Item       *string  `json:"item"`
	Juror      *string  `json:"juror"`
	Vote       *Choice  `json:"vote"`
	Label      Choice   `json:"label"`
	Confidence *float64 `json:"confidence"`
	Made
}

// maxLine is the longest line in bytes.
const maxLine = 1 << 20

// Read reads votes in JSON Lines: {"item", "juror", "vote", "label", "confidence", "model", "template"}, the last four optional. A vote of
// null is an abstention. It returns the ballots sorted by item. Its errors name the line.
func Read(from io.Reader) ([]Ballot, error) {
	scanner := bufio.NewScanner(from)
	scanner.Buffer(nil, maxLine)
	ballots := map[string]*Ballot{}
	n := 0
	for scanner.Scan() {
		n++
		if len(bytes.TrimSpace(scanner.Bytes())) == 0 {
			continue
		}
		if err := take(ballots, scanner.Bytes()); err != nil {
			return nil, fmt.Errorf("votes, line %d: %w", n, err)
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("votes, line %d: %w", n+1, err)
	}
	if len(ballots) == 0 {
		return nil, errors.New("the input has no votes")
	}
	list := make([]Ballot, 0, len(ballots))
	for _, b := range ballots {
		list = append(list, *b)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Item < list[j].Item })
	return list, nil
}

func take(ballots map[string]*Ballot, text []byte) error {
	var l line
	if err := json.Unmarshal(text, &l, json.RejectUnknownMembers(true)); err != nil {
		return err
	}
	if err := l.check(text); err != nil {
		return err
	}
	b := ballots[*l.Item]
	if b == nil {
		b = &Ballot{Item: *l.Item, Votes: map[string]Choice{}, Sure: map[string]float64{}, Made: map[string]Made{}}
		ballots[*l.Item] = b
	}
	if _, twice := b.Votes[*l.Juror]; twice {
		return fmt.Errorf("a second vote of juror %q on item %q", *l.Juror, *l.Item)
	}
	if l.Label != "" && b.Label != "" && l.Label != b.Label {
		return fmt.Errorf("label: item %q has the label %s here and %s before", *l.Item, l.Label, b.Label)
	}
	if l.Label != "" {
		b.Label = l.Label
	}
	b.Votes[*l.Juror], b.Sure[*l.Juror], b.Made[*l.Juror] = "", 1, l.Made
	if l.Vote != nil {
		b.Votes[*l.Juror] = *l.Vote
	}
	if l.Confidence != nil {
		b.Sure[*l.Juror] = *l.Confidence
	}
	return nil
}

func (l *line) check(text []byte) error {
	switch {
	case l.Item == nil || *l.Item == "":
		return errors.New("item: missing or empty")
	case l.Juror == nil || *l.Juror == "":
		return errors.New("juror: missing or empty")
	case l.Confidence != nil && !(*l.Confidence >= 0 && *l.Confidence <= 1):
		return fmt.Errorf("confidence: %v: want a number from 0 to 1", *l.Confidence)
	}
	if l.Vote == nil { // a missing vote and null look the same here
		var there map[string]jsontext.Value
		if err := json.Unmarshal(text, &there); err != nil {
			return err
		}
		if _, ok := there["vote"]; !ok {
			return errors.New("vote: missing; null is an abstention")
		}
	}
	return nil
}

// jurors lists the jurors on any of the ballots.
func jurors(ballots []Ballot) []string {
	var names []string
	for _, b := range ballots {
		for name := range b.Votes {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
