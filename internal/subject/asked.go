package subject

import "strings"

// An askedCall is what a model asked for.
type askedCall struct {
	ID, Name, Arguments string // arguments as they are compared: in canonical form if they have one
	Number              int    // of the message in which it asks
}

// askedCalls are what models asked for so far. The zero value has none.
type askedCalls struct {
	byID  map[string]askedCall
	alike map[[2]string]int // by tool and arguments
}

// An askedHow says how a call was found.
type askedHow int

// The ways.
const (
	askedUnknown   askedHow = iota
	askedByID               // it has the id, the tool and the arguments
	askedOtherwise          // it has the id, and another tool or other arguments
	askedAlike              // it has the tool and the arguments
)

// Add adds a call. The latest counts.
func (c *askedCalls) Add(call askedCall) {
	if c.alike == nil {
		c.byID, c.alike = map[string]askedCall{}, map[[2]string]int{}
	}
	if call.ID != "" {
		c.byID[call.ID] = call
	}
	c.alike[[2]string{call.Name, call.Arguments}] = call.Number
	c.alike[[2]string{toolIn(call.Name), call.Arguments}] = call.Number
}

// toolIn is a name without the server before it.
func toolIn(name string) string {
	if i := strings.LastIndex(name, "__"); i >= 0 && i+2 < len(name) {
		return name[i+2:]
	}
	return name
}

// For returns the number of the message that asks for a use of a tool. id is the model's id of the call, or "" if nobody states it.
func (c *askedCalls) For(id, tool, arguments string) (number int, how askedHow) {
	if call, known := c.byID[id]; known && id != "" {
		if (call.Name == tool || toolIn(call.Name) == tool) && call.Arguments == arguments {
			return call.Number, askedByID
		}
		return call.Number, askedOtherwise
	}
	if number, known := c.alike[[2]string{tool, arguments}]; known {
		return number, askedAlike
	}
	return 0, askedUnknown
}
