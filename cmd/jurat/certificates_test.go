package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"jurat/internal/must"
)

var shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// TestCertificatesByOpenSSL runs the commands of docs/certificates.md as they stand there, and the log then has the key.
func TestCertificatesByOpenSSL(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("no openssl")
	}
	doc := must.Get(os.ReadFile("../../docs/certificates.md"))(t)
	blocks := shellBlock.FindAllStringSubmatch(string(doc), -1)
	if len(blocks) != 4 {
		t.Fatalf("%d blocks", len(blocks))
	}
	dir := t.TempDir()
	t.Chdir(dir)
	doing(t, 0, "init")
	for _, block := range blocks {
		if arguments, is := strings.CutPrefix(strings.TrimSpace(block[1]), "jurat "); is {
			doing(t, 0, splitLine(arguments)...)
			continue
		}
		shell := exec.Command("sh", "-eu")
		shell.Dir, shell.Stdin = dir, strings.NewReader(block[1])
		if said, err := shell.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s\n%s", err, said, block[1])
		}
	}
	if list := doing(t, 0, "keys", "list", "--json"); !strings.Contains(list, `"courier-agent-v1"`) {
		t.Error(list)
	}
	// Another actor's certificate is refused.
	doing(t, 2, "keys", "register", "agent", "another-agent", "--public", filepath.Join(dir, "public.pem"), "--certificate", filepath.Join(dir, "certificate.pem"), "--reason", "no")
	// The request is one that jurat's own CA takes, too.
	doing(t, 0, "ca", "init", "--ca", "own", "--name", "Own")
	if made := doing(t, 0, "ca", "issue", "--ca", "own", "request.pem"); !strings.Contains(made, "BEGIN CERTIFICATE") {
		t.Error(made)
	}
}

// splitLine splits a command line at blanks outside of quotation marks.
func splitLine(line string) (list []string) {
	for _, match := range regexp.MustCompile(`"([^"]*)"|(\S+)`).FindAllStringSubmatch(line, -1) {
		list = append(list, match[1]+match[2])
	}
	return list
}

func write(t *testing.T, file, content string) string {
	t.Helper()
	must.Do(t, os.WriteFile(file, []byte(content), 0o600))
	return file
}
