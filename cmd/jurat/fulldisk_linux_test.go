package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/examples"
	"jurat/internal/disktest"
	"jurat/internal/must"
)

// onDisk is a server in a process of its own, with a data folder on a small disk.
type onDisk struct {
	*machine
	disk         *disktest.Disk
	agent        string   // a token
	submitter    string   // a token
	spare        []string // tokens that can be revoked
	acknowledged []string // ids of records
}

// TestServeOnFullDisk fills the disk under 'jurat serve', once with a file of another program and once with records.
// Records can be read, records that do not fit are refused, tokens can be revoked, and the server can be stopped and
// started. With free space everything works again, and nothing is lost.
func TestServeOnFullDisk(t *testing.T) {
	disktest.Run(t, 16, func(disk *disktest.Disk) {
		s := &onDisk{disk: disk, machine: &machine{t: t, env: os.Environ(), args: []string{"--data", filepath.Join(disk.Path, "data")}}}
		t.Cleanup(s.kill)
		s.begin()
		s.agent, s.submitter = s.grant("fleet", "agent"), s.grant("sam", "submitter")
		for _, name := range []string{"one", "two"} {
			s.spare = append(s.spare, s.grant(name, "auditor"))
		}
		for range 3 {
			s.wantSealed(2000)
		}

		s.isFull(s.spare[0])
		s.makeRoom()
		s.isWell()

		for n := 0; ; n++ {
			if status, _, _ := s.post(s.agent, "/v1/records", s.payload(200_000)); status == http.StatusServiceUnavailable {
				break
			}
			if n == 1000 {
				t.Fatal("the disk does not become full")
			}
		}
		s.isFull(s.spare[1])
		disk.Resize(t, 64)
		s.makeRoom()
		s.isWell()

		if err := s.stop(); err != nil {
			t.Error(err)
		}
		if out := s.do("log", "fsck"); !strings.Contains(out, "the log is whole") {
			t.Error(out)
		}
	})
}

func (s *onDisk) begin() {
	s.t.Helper()
	must.Do(s.t, s.start())
}

// isFull checks the server on a full disk, before and after a restart. It revokes a token in between.
func (s *onDisk) isFull(stolen string) {
	s.t.Helper()
	s.refuses()
	if status, body := s.get(stolen, "/v1/records"); status != http.StatusOK {
		s.t.Errorf("before it is revoked: %d %s", status, body)
	}
	s.do("access", "revoke", stolen, "--reason", "stolen", "--by", "tester")
	if status, body := s.get(stolen, "/v1/records"); status != http.StatusUnauthorized {
		s.t.Errorf("after it is revoked: %d %s", status, body)
	}
	if err := s.cannot("access", "grant", "noa", "auditor", "--reason", "a test", "--by", "tester"); err == nil || !strings.Contains(err.Error(), "no space left") {
		s.t.Errorf("granting: %v", err)
	}
	if out := s.do("log", "fsck"); !strings.Contains(out, "the log is whole") {
		s.t.Error(out)
	}
	if err := s.stop(); err != nil {
		s.t.Errorf("stopping on a full disk: %v", err)
	}
	s.begin()
	s.refuses()
	if status, body := s.get(stolen, "/v1/records"); status != http.StatusUnauthorized {
		s.t.Errorf("revoked, after the start: %d %s", status, body)
	}
}

// refuses checks that the server can be read, refuses every write, and says why.
func (s *onDisk) refuses() {
	s.t.Helper()
	s.disk.Fill(s.t, s.filler()) // also the space that a start has freed
	s.wantUnready()
	for _, ask := range []struct{ token, path, body string }{
		{s.agent, "/v1/records", s.payload(200_000)},
		{s.submitter, "/v1/submissions", s.trial()},
	} {
		status, header, body := s.post(ask.token, ask.path, ask.body)
		if status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" || !strings.Contains(body, "no space left") || strings.Contains(body, s.disk.Path) {
			s.t.Errorf("POST %s: %d, Retry-After %q: %s", ask.path, status, header.Get("Retry-After"), body)
		}
	}
	s.reads()
}

func (s *onDisk) filler() string { return filepath.Join(s.disk.Path, "filler") }

func (s *onDisk) makeRoom() {
	s.t.Helper()
	must.Do(s.t, os.Remove(s.filler()))
}

func (s *onDisk) wantUnready() {
	s.t.Helper()
	time.Sleep(1100 * time.Millisecond) // the server checks once a second
	answer := must.Get(http.Get(s.address() + "/readyz"))(s.t)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" ||
		!strings.Contains(string(body), "no space left") || strings.Contains(string(body), s.disk.Path) {
		s.t.Errorf("/readyz: %s, Retry-After %q: %s %v", answer.Status, answer.Header.Get("Retry-After"), body, err)
	}
}

// reads reads everything that was acknowledged.
func (s *onDisk) reads() {
	s.t.Helper()
	for _, path := range []string{"/healthz", "/v1/trust", "/log/checkpoint", "/"} {
		if status, body := s.get("", path); status != http.StatusOK {
			s.t.Errorf("%s: %d %s", path, status, body)
		}
	}
	for _, id := range s.acknowledged {
		if status, body := s.get(s.agent, "/v1/records/"+id); status != http.StatusOK {
			s.t.Errorf("reading %s: %d %s", id, status, body)
		}
	}
}

// isWell checks that everything works when there is free space.
func (s *onDisk) isWell() {
	s.t.Helper()
	time.Sleep(1100 * time.Millisecond) // the server checks once a second
	if status, body := s.get("", "/readyz"); status != http.StatusOK {
		s.t.Errorf("/readyz with room: %d %s", status, body)
	}
	s.wantSealed(100_000)
	status, _, body := s.post(s.submitter, "/v1/submissions", s.trial())
	if status != http.StatusAccepted {
		s.t.Errorf("a trial with room: %d %s", status, body)
	}
	s.reads()
}

// trial returns a case that rules can try.
func (s *onDisk) trial() string {
	s.t.Helper()
	card, conversation, err := examples.Read("kitchen-return")
	must.Do(s.t, err)
	return fmt.Sprintf(`{"agentCard":%s,"conversation":%s}`, card, conversation)
}

func (s *onDisk) payload(size int) string {
	return fmt.Sprintf(`{"agent_id":"fleet","request_id":"1","timestamp":"2026-01-01T00:00:00Z","model":"m","model_version":"1","prompt":"p","response":%q,"parameters":{}}`,
		strings.Repeat("x", size))
}

func (s *onDisk) wantSealed(size int) {
	s.t.Helper()
	if status, _, body := s.post(s.agent, "/v1/records", s.payload(size)); status != http.StatusCreated {
		s.t.Fatalf("sealing with room: %d %s", status, body)
	}
}

// post sends a document, and records the id of an acknowledged record.
func (s *onDisk) post(token, path, body string) (int, http.Header, string) {
	s.t.Helper()
	r := must.Get(http.NewRequestWithContext(s.t.Context(), "POST", s.address()+path, strings.NewReader(body)))(s.t)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	answer := must.Get(http.DefaultClient.Do(r))(s.t)
	defer answer.Body.Close()
	doc := must.Get(io.ReadAll(answer.Body))(s.t)
	if answer.StatusCode == http.StatusCreated {
		record := must.Get(evidence.Open(doc))(s.t)
		s.acknowledged = append(s.acknowledged, record.Payload.RecordID)
	}
	return answer.StatusCode, answer.Header, string(doc)
}

// cannot runs a command that must fail, and returns its error.
func (s *onDisk) cannot(args ...string) error {
	s.t.Helper()
	var errs bytes.Buffer
	cmd := s.command(args...)
	cmd.Stderr = &errs
	if err := cmd.Run(); err == nil {
		return nil
	}
	if code := cmd.ProcessState.ExitCode(); code != exitCannot {
		s.t.Errorf("jurat %s: exit code %d", strings.Join(args, " "), code)
	}
	return errors.New(errs.String())
}
