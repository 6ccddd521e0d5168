package asked

import "testing"

func TestFor(t *testing.T) {
	var c Calls
	if n, how := c.For("x", "read", "{}"); n != 0 || how != Unknown {
		t.Error("a call is found where there is none")
	}
	c.Add(Call{"x", "mcp__files__read", `{"a":1}`, 3})
	c.Add(Call{"", "write", `{"a":1}`, 4})
	c.Add(Call{"y", "read", `{"a":1}`, 5})
	for _, test := range []struct {
		id, tool, arguments string
		number              int
		how                 How
	}{
		{"x", "read", `{"a":1}`, 3, ByID},
		{"x", "mcp__files__read", `{"a":1}`, 3, ByID},
		{"x", "read", `{"a":2}`, 3, Otherwise},
		{"x", "write", `{"a":1}`, 3, Otherwise},
		{"", "read", `{"a":1}`, 5, Alike},
		{"z", "write", `{"a":1}`, 4, Alike},
		{"", "files__read", `{"a":1}`, 0, Unknown},
		{"", "read", `{"a":2}`, 0, Unknown},
	} {
		if n, how := c.For(test.id, test.tool, test.arguments); n != test.number || how != test.how {
			t.Errorf("%+v: message %d, %d", test, n, how)
		}
	}
	c.Add(Call{"__", "__", "", 6})
	if n, how := c.For("__", "__", ""); n != 6 || how != ByID {
		t.Error(n, how)
	}
}
