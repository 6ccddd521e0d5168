package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"jurat/internal/test/must"
	"jurat/internal/test/rig"
)

// tokenHouse makes an installation whose authority, operator and agent have their keys on a token. before is put before the helper.
func tokenHouse(t *testing.T, before ...string) (soft *rig.Token, data string) {
	t.Helper()
	soft = rig.NewToken(t)
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
	must.Equal(t, strings.Count(history, `"kind":"pkcs11"`)+strings.Count(history, `"kind": "pkcs11"`), 2)
	must.Contain(t, doing(t, 0, "--data", data, "keys", "list", "--history"), "as the operator says, kept by pkcs11, SoftHSM project")
	again := written(t, doing(t, 0, "--data", data, "seal", written(t, strings.ReplaceAll(strings.ReplaceAll(action, "AGENT", "mia"), "r-1", "r-2"))))
	doing(t, 0, "verify", "--trust", written(t, doing(t, 0, "--data", data, "trust")), record, again)
}

// TestOwnersToken: an owner signs with their own token.
func TestOwnersToken(t *testing.T) {
	soft := rig.NewToken(t)
	mine := "pkcs11:token=house;object=mine"
	soft.Command(t, "generate", mine)
	data := filepath.Join(t.TempDir(), "data")
	helper := []string{"--token", mine, "--token-helper", soft.Helper(t)}
	doing(t, 0, "--data", data, "init")
	id := doing(t, 0, append([]string{"--data", data, "keys", "new", "agent", "ann", "--owner", "--reason", "the owner holds it"}, helper...)...)
	must.Hold(t, regexp.MustCompile(`^sha256:[0-9a-f]{64}$`).MatchString(id), "registered as %s", id)
	payload := written(t, strings.ReplaceAll(action, "AGENT", "ann"))
	doing(t, 2, "--data", data, "seal", payload) // this installation cannot sign for the agent
	signed := written(t, doing(t, 0, append([]string{"seal", "--sign-only", payload}, helper...)...))
	record := written(t, doing(t, 0, "--data", data, "seal", signed))
	doing(t, 0, "verify", "--trust", written(t, doing(t, 0, "--data", data, "trust")), record)
	doing(t, 2, "seal", "--sign-only", payload, "--token", "pkcs11:token=house;object=none", "--token-helper", soft.Helper(t))
	doing(t, 2, "seal", "--sign-only", payload, "--token", mine, "--token-helper", "true")
	doing(t, 2, "seal", "--sign-only", payload, "--token", mine)
}

// lieFile names the file that tells jurat-pkcs11-lying what to do: a way to lie, and a part of the URIs of keys that it lies about.
const lieFile = "JURAT_TEST_LIE"

// lying is the program jurat-pkcs11-lying. It passes messages on between jurat and the helper that its arguments name, and changes some.
func lying() {
	helper := exec.Command(os.Args[1], os.Args[2:]...)
	helper.Stderr = os.Stderr
	in, err := helper.StdinPipe()
	out, outErr := helper.StdoutPipe()
	if err := errors.Join(err, outErr, helper.Start()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	l := &liar{asked: map[float64]string{}, earlier: map[string][]byte{}}
	go func() {
		_ = l.pass(os.Stdin, in, l.request) // ends with jurat
		in.Close()
	}()
	if err := errors.Join(l.pass(out, os.Stdout, l.answer), helper.Wait()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type liar struct {
	mu      sync.Mutex         // held while the maps are read or changed
	asked   map[float64]string // the way to lie in the answer to a request, by the request's id, and the key's URI
	earlier map[string][]byte  // the first signature of each key, by its URI
}

// pass passes lines on, after change has changed the message in each.
func (l *liar) pass(from io.Reader, to io.Writer, change func(map[string]any) error) error {
	for lines := bufio.NewScanner(from); ; {
		if !lines.Scan() {
			return lines.Err()
		}
		message := map[string]any{}
		if err := json.Unmarshal(lines.Bytes(), &message); err != nil {
			return err
		}
		if err := change(message); err != nil {
			return err
		}
		text, err := json.Marshal(message)
		if err != nil {
			return err
		}
		if _, err := to.Write(append(text, '\n')); err != nil {
			return err
		}
	}
}

func (l *liar) request(message map[string]any) error {
	if message["do"] != "sign" {
		return nil
	}
	text, err := os.ReadFile(os.Getenv(lieFile))
	if err != nil {
		return err
	}
	way, about, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	uri := message["uri"].(string)
	if about == "" || !strings.Contains(uri, about) {
		way = ""
	}
	switch way {
	case "another-message":
		other := sha256.Sum256([]byte(message["digest"].(string)))
		message["digest"] = other[:]
	case "another-key":
		message["uri"] = "pkcs11:token=house;object=other"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked[message["id"].(float64)] = way + " " + uri
	return nil
}

func (l *liar) answer(message map[string]any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	way, uri, asked := strings.Cut(l.asked[message["id"].(float64)], " ")
	delete(l.asked, message["id"].(float64))
	if !asked || message["signature"] == nil {
		return nil
	}
	// encoding/json reads and writes []byte in base64.
	var signature []byte
	if err := json.Unmarshal([]byte(strconv.Quote(message["signature"].(string))), &signature); err != nil {
		return err
	}
	if l.earlier[uri] == nil {
		l.earlier[uri] = signature
	}
	switch way {
	case "flipped":
		signature[len(signature)-1] ^= 1
	case "earlier":
		signature = l.earlier[uri]
	case "none":
		delete(message, "signature")
		return nil
	}
	message["signature"] = signature
	return nil
}

// TestLyingHelper: nothing is sealed with a signature that is not the right key's over the right message. Once the helper is honest again,
// sealing goes on, and the log is whole.
func TestLyingHelper(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lie")
	t.Setenv(lieFile, file)
	lie := func(how string) {
		t.Helper()
		must.Do(t, os.WriteFile(file, []byte(how), 0o600))
	}
	lie("")
	_, data := tokenHouse(t, "jurat-pkcs11-lying")
	doing(t, 0, "--data", data, "keys", "new", "agent", "other", "--token", "pkcs11:token=house;object=other")
	n := 0
	payload := func() string {
		n++
		return written(t, strings.NewReplacer("AGENT", "mia", "r-1", fmt.Sprint("r-", n)).Replace(action))
	}
	at, _, stop := serve(t, "--data", data, "serve", "--addr", "127.0.0.1:0")
	token := doing(t, 0, "--data", data, "access", "grant", "mia", "agent", "--reason", "a test", "--by", "tester")
	post := func() (int, string) {
		t.Helper()
		text := must.Get(os.ReadFile(payload()))(t)
		return postTo(t, at+"/v1/records", token, fmt.Sprint("key ", n), string(text))
	}
	status, body := post()
	must.Need(t, status == 201, "%v %v", status, body) // from now on, there is an earlier signature
	size := recordsOf(t, data)
	for _, about := range []string{"object=mia", "object=jurat-authority"} {
		for _, way := range []string{"another-message", "another-key", "flipped", "earlier", "none"} {
			lie(way + " " + about)
			status, body := post()
			must.Hold(t, status >= 500, "%s of %s: status %d, %s", way, about, status, body)
			if way != "earlier" { // the command starts a helper of its own, which has not signed before
				doing(t, 2, "--data", data, "seal", payload())
			}
			must.Equal(t, recordsOf(t, data), size, way, "of", about)
		}
	}
	lie("")
	status, body = post()
	must.Hold(t, status == 201, "with an honest helper again: %d, %s", status, body)
	record := written(t, doing(t, 0, "--data", data, "seal", payload()))
	doing(t, 0, "verify", "--trust", written(t, doing(t, 0, "--data", data, "trust")), record)
	must.Equal(t, recordsOf(t, data), size+2)
	must.Equal(t, stop(), 0)
}

// recordsOf examines the log, and returns how many records it has.
func recordsOf(t *testing.T, data string) int {
	t.Helper()
	var found struct {
		Records int
		Whole   bool
	}
	text := doing(t, 0, "--data", data, "log", "fsck", "--json")
	err := json.Unmarshal(bytes.TrimSpace([]byte(text)), &found)
	must.Need(t, err == nil && found.Whole && found.Records != 0, "the log is %s, %v", text, err)
	return found.Records
}
