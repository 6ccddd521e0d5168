// Package asked finds which call of a model a use of a tool carries out. A recorder sees both apart: what the model asked for, and what the agent's program
// then asked a server.
//
// # A name is compared without its server
//
// Programs offer tools to a model under names of their own, as mcp__SERVER__TOOL. So what follows the last "__" also names the tool.
//
// # An id counts before likeness
//
// A program may state the model's id of the call. If it is that of a call for another tool or with other arguments, that is said: the program did something else than
// its model asked for. Without an id, the latest call for the tool with the same arguments is the one, which is likely and no more.
package asked

import "strings"

// A Call is what a model asked for.
type Call struct {
	ID, Name, Arguments string // arguments as they are compared: in canonical form if they have one
	Number              int    // of the message in which it asks
}

// Calls are what models asked for so far. The zero value has none.
type Calls struct {
	byID  map[string]Call
	alike map[[2]string]int // by tool and arguments
}

// A How says how a call was found.
type How int

// The ways.
const (
	Unknown   How = iota
	ByID          // it has the id, the tool and the arguments
	Otherwise     // it has the id, and another tool or other arguments
	Alike         // it has the tool and the arguments
)

// Add adds a call. The latest counts.
func (c *Calls) Add(call Call) {
	if c.alike == nil {
		c.byID, c.alike = map[string]Call{}, map[[2]string]int{}
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
func (c *Calls) For(id, tool, arguments string) (number int, how How) {
	if call, known := c.byID[id]; known && id != "" {
		if (call.Name == tool || toolIn(call.Name) == tool) && call.Arguments == arguments {
			return call.Number, ByID
		}
		return call.Number, Otherwise
	}
	if number, known := c.alike[[2]string{tool, arguments}]; known {
		return number, Alike
	}
	return 0, Unknown
}
