package subject

import (
	"encoding/hex"
	"jurat/internal/subject/forms"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"jurat/internal/subject/attested"
	"jurat/verify"
)

// aStatement is a COSE_Sign1 without a valid signature: nobody's key is known here.
func aStatement(t *testing.T, payload string) attested.Statement {
	t.Helper()
	head, err := hex.DecodeString("d2844da2012603" + "6a746578742f706c61696e")
	if err != nil {
		t.Fatal(err)
	}
	head[2] = 0x40 + byte(len(head)-3)
	doc := append(head, 0xa0, 0x58, byte(len(payload)))
	doc = append(append(doc, payload...), 0x58, 64)
	s, err := attested.Read(append(doc, make([]byte, 64)...), verify.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return *s
}

// TestStatementsOfOthers: they come after the case's own messages, and evidence with them is read again as it was made.
func TestStatementsOfOthers(t *testing.T) {
	one, two := aStatement(t, "Transfer 7 was paid, says the bank."), aStatement(t, "Transfer 8 was not paid, says the bank.")
	for name, make := range map[string]func(t *testing.T) *Case{
		"a conversation": func(t *testing.T) *Case {
			c, err := New([]byte(`{"name":"payer"}`), []byte(`[{"role":"user","content":"Pay 7"},{"role":"assistant","content":"Paid."}]`))
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
		"messages of Anthropic": func(t *testing.T) *Case {
			c, err := NewAs(forms.Anthropic, nil, []byte(`{"messages":[{"role":"user","content":"Pay 7"},{"role":"assistant","content":"Paid."}]}`))
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := make(t)
			alone, before := c.Digest(), len(c.Messages)
			if err := c.AddStatements(one, two); err != nil {
				t.Fatal(err)
			}
			if len(c.Messages) != before+2 || c.Digest() == alone {
				t.Errorf("%d messages", len(c.Messages))
			}
			m := c.Message(before + 1)
			if m.Role != Statement || m.Text != one.Text || !strings.Contains(m.Head, "Not verified") || m.AgentCalls() != nil {
				t.Errorf("%+v", m)
			}
			again, err := Parse(c.Material())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.Messages, again.Messages); diff != "" || again.Digest() != c.Digest() || again.Form != c.Form || again.HasCard != c.HasCard {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.Statements, again.Statements, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			if err := c.AddStatements(one); err == nil {
				t.Error("statements were added twice")
			}
		})
	}
}

func TestStatementsRefused(t *testing.T) {
	one := aStatement(t, "Transfer 7 was paid, says the bank.")
	lying := one
	lying.Text = "Transfer 7 was not paid."
	for want, list := range map[string][]attested.Statement{"want 1 to 100": slices.Repeat([]attested.Statement{one}, 101), "duplicate": {one, one}, "statement 1: it says something else": {lying}} {
		c, err := New(nil, []byte(`[{"role":"user","content":"Pay 7"}]`))
		if err != nil {
			t.Fatal(err)
		}
		alone := c.Digest()
		if err := c.AddStatements(list...); err == nil || !strings.Contains(err.Error(), want) || c.Digest() != alone {
			t.Errorf("%v, want %q", err, want)
		}
		material, err := json.Marshal(map[string]any{"conversation": []any{map[string]string{"role": "user", "content": "Pay 7"}}, "statements": list})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(material); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for _, statements := range []string{"7", "[]", "[7]", `[{"x":1}]`} {
		if _, err := Parse([]byte(`{"conversation":[{"role":"user","content":"Pay 7"}],"statements":` + statements + `}`)); err == nil {
			t.Errorf("%s was read", statements)
		}
	}
}

// TestStatementsBesideRecords: evidence of records takes statements, too.
func TestStatementsBesideRecords(t *testing.T) {
	c := fromRecords(t, output(t, 1, `"Pay 7"`, `"Paid."`, ""))
	before := len(c.Messages)
	if err := c.AddStatements(aStatement(t, "Transfer 7 was paid, says the bank.")); err != nil {
		t.Fatal(err)
	}
	again, err := Parse(c.Material())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c.Messages, again.Messages); diff != "" || len(again.Messages) != before+1 || len(again.Exhibits()) != 1 || again.Recorded == nil {
		t.Error(diff)
	}
}
