package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"jurat/internal/must"
	"jurat/internal/tokentest"
)

// tokenHouse makes an installation whose authority, operator and agent have their keys on a token. before is put before the helper.
func tokenHouse(t *testing.T, before ...string) (soft *tokentest.Token, data string) {
	t.Helper()
	soft = tokentest.New(t)
	t.Setenv("JURAT_TOKEN_HELPER", strings.Join(append(before, soft.Helper(t)), " "))
	data = filepath.Join(t.TempDir(), "data")
	doing(t, 0, "--data", data, "init", "--token", "pkcs11:token=house")
	doing(t, 0, "--data", data, "keys", "new", "operator", "operator", "--token", "pkcs11:token=house;object=operator")
	doing(t, 0, "--data", data, "keys", "new", "agent", "mia", "--token", "pkcs11:token=house;object=mia")
	return soft, data
}

func written(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(file, []byte(text+"\n"), 0o600))
	return file
}

const action = `{"agent_id":"AGENT","request_id":"r-1","timestamp":"2026-01-31T16:15:00Z","model":"m","model_version":"1","prompt":"p","response":"r","parameters":{}}`

// TestTokenCommands seals, verifies, lists, rotates, registers and signs with keys on a token.
func TestTokenCommands(t *testing.T) {
	_, data := tokenHouse(t)
	trust := written(t, doing(t, 0, "--data", data, "trust"))
	record := written(t, doing(t, 0, "--data", data, "seal", written(t, strings.ReplaceAll(action, "AGENT", "mia"))))
	doing(t, 0, "verify", "--trust", trust, record)
	listed := doing(t, 0, "--data", data, "keys", "list")
	if !strings.Contains(listed, "pkcs11:token=house;object=mia;id=") || !strings.Contains(doing(t, 0, "--data", data, "keys", "list", "--json"), `"token":`) {
		t.Errorf("the list is\n%s", listed)
	}
	for _, file := range []string{"authority/root.key", "authority/authority.key"} {
		if text, err := os.ReadFile(filepath.Join(data, file)); err != nil || !strings.Contains(string(text), "BEGIN TOKEN KEY") || strings.Contains(string(text), "PRIVATE") {
			t.Errorf("%s is %s, %v", file, text, err)
		}
	}
	doing(t, 2, "--data", data, "keys", "new", "agent", "other", "--token", "pkcs11:token=house;object=mia")
	doing(t, 2, "--data", data, "keys", "new", "agent", "other", "--token", "pkcs11:token=house;object=other?pin-value=1234")
	doing(t, 0, "--data", data, "keys", "rotate", "agent", "mia", "--token", "pkcs11:token=house;object=mia-2", "--reason", "once a year")
	doing(t, 0, "--data", data, "keys", "rotate", "agent", "mia", "--reason", "back to a file")
	history := doing(t, 0, "--data", data, "keys", "list", "--history", "--json")
	if n := strings.Count(history, `"kind":"pkcs11"`) + strings.Count(history, `"kind": "pkcs11"`); n != 2 {
		t.Errorf("%d events state how a key is protected, want 2:\n%s", n, history)
	}
	if text := doing(t, 0, "--data", data, "keys", "list", "--history"); !strings.Contains(text, "as the operator says, kept by pkcs11, SoftHSM project") {
		t.Errorf("the history is\n%s", text)
	}
	again := written(t, doing(t, 0, "--data", data, "seal", written(t, strings.ReplaceAll(strings.ReplaceAll(action, "AGENT", "mia"), "r-1", "r-2"))))
	doing(t, 0, "verify", "--trust", written(t, doing(t, 0, "--data", data, "trust")), record, again)
}

// TestOwnersToken: an owner signs with their own token.
func TestOwnersToken(t *testing.T) {
	soft := tokentest.New(t)
	mine := "pkcs11:token=house;object=mine"
	soft.Command(t, "generate", mine)
	data := filepath.Join(t.TempDir(), "data")
	helper := []string{"--token", mine, "--token-helper", soft.Helper(t)}
	doing(t, 0, "--data", data, "init")
	id := doing(t, 0, append([]string{"--data", data, "keys", "new", "agent", "ann", "--owner", "--reason", "the owner holds it"}, helper...)...)
	if !regexp.MustCompile(`^sha256:[0-9a-f]{64}$`).MatchString(id) {
		t.Errorf("registered as %s", id)
	}
	payload := written(t, strings.ReplaceAll(action, "AGENT", "ann"))
	doing(t, 2, "--data", data, "seal", payload) // this installation cannot sign for the agent
	signed := written(t, doing(t, 0, append([]string{"seal", "--sign-only", payload}, helper...)...))
	record := written(t, doing(t, 0, "--data", data, "seal", signed))
	doing(t, 0, "verify", "--trust", written(t, doing(t, 0, "--data", data, "trust")), record)
	doing(t, 2, "seal", "--sign-only", payload, "--token", "pkcs11:token=house;object=none", "--token-helper", soft.Helper(t))
	doing(t, 2, "seal", "--sign-only", payload, "--token", mine, "--token-helper", "true")
	doing(t, 2, "seal", "--sign-only", payload, "--token", mine)
}
