package subject

import "testing"

func TestFor(t *testing.T) {
	var c askedCalls
	if n, how := c.For("x", "read", "{}"); n != 0 || how != askedUnknown {
		t.Error("a call is found where there is none")
	}
	c.Add(askedCall{"x", "mcp__files__read", `{"a":1}`, 3})
	c.Add(askedCall{"", "write", `{"a":1}`, 4})
	c.Add(askedCall{"y", "read", `{"a":1}`, 5})
	for _, test := range []struct {
		id, tool, arguments string
		number              int
		how                 askedHow
	}{
		{"x", "read", `{"a":1}`, 3, askedByID},
		{"x", "mcp__files__read", `{"a":1}`, 3, askedByID},
		{"x", "read", `{"a":2}`, 3, askedOtherwise},
		{"x", "write", `{"a":1}`, 3, askedOtherwise},
		{"", "read", `{"a":1}`, 5, askedAlike},
		{"z", "write", `{"a":1}`, 4, askedAlike},
		{"", "files__read", `{"a":1}`, 0, askedUnknown},
		{"", "read", `{"a":2}`, 0, askedUnknown},
	} {
		if n, how := c.For(test.id, test.tool, test.arguments); n != test.number || how != test.how {
			t.Errorf("%+v: message %d, %d", test, n, how)
		}
	}
	c.Add(askedCall{"__", "__", "", 6})
	if n, how := c.For("__", "__", ""); n != 6 || how != askedByID {
		t.Error(n, how)
	}
}
