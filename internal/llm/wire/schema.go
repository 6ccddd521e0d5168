package wire

import (
	stdjson "encoding/json"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Ordered is a JSON object as SDKs want it, whose members' values are sent byte by byte. Models write members in the order
// in which the schema has them, and a map would sort them.
func Ordered(object jsontext.Value) (map[string]any, error) {
	var members map[string]jsontext.Value
	if err := json.Unmarshal(object, &members); err != nil {
		return nil, err
	}
	ordered := make(map[string]any, len(members))
	for name, value := range members {
		ordered[name] = stdjson.RawMessage(value)
	}
	return ordered, nil
}
