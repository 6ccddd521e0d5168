package openssl_test

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"jurat/evidence"
	"jurat/internal/openssl"
	"jurat/jurattest"
	"jurat/verify"
	"jurat/verify/trust"
)

func sealed(t *testing.T, h *jurattest.House) *evidence.Record {
	t.Helper()
	return h.Seal(t, evidence.Payload{ActionType: evidence.Message, AgentID: "a", RequestID: "r", Timestamp: "2026-01-01T00:00:00Z", Model: "m", ModelVersion: "1",
		Prompt: []byte(`"p"`), Response: []byte(`"r"`), Parameters: []byte(`{}`)})
}

func TestWrite(t *testing.T) {
	h := jurattest.New(t)
	record := sealed(t, h)
	for n, want := range map[int][]string{
		1: {"authority.pem", "payload.json", "public.pem", "signature.bin", "token.tsr", "verify.sh"},
		2: {"001-message/authority.pem", "001-message/payload.json", "001-message/public.pem", "001-message/signature.bin", "001-message/token.tsr",
			"002-message/authority.pem", "002-message/payload.json", "002-message/public.pem", "002-message/signature.bin", "002-message/token.tsr", "verify.sh"},
	} {
		files := map[string][]byte{}
		_, err := openssl.Write(slices.Repeat([]*evidence.Record{record}, n), h.Trust(t), func(name string, content []byte) error {
			files[name] = content
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if names := slices.Sorted(maps.Keys(files)); !slices.Equal(names, want) {
			t.Errorf("files %q", names)
		}
	}
}

// TestAnotherActor: openssl checks keys, but knows no names. So a record that another actor's key signed gives no files.
func TestAnotherActor(t *testing.T) {
	h := jurattest.New(t)
	record, trusted := sealed(t, h), h.Trust(t)
	for i := range trusted.Keys {
		if trusted.Keys[i].KeyID == record.Payload.Signers[0].KeyID {
			trusted.Keys[i].Name = "b"
		}
	}
	if report := verify.Record(record, verify.Options{Trust: trusted}); report.Of(verify.Authentication).Rule != "actor" {
		t.Fatalf("%+v", report.Of(verify.Authentication))
	}
	_, err := openssl.Write([]*evidence.Record{record}, trusted, func(name string, _ []byte) error {
		t.Errorf("%s is written", name)
		return nil
	})
	if !errors.Is(err, openssl.ErrActor) {
		t.Error(err)
	}
}

func TestOpenSSLAccepts(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("openssl is not installed")
	}
	h := jurattest.NewForStrangers(t)
	dir := t.TempDir()
	_, err := openssl.Write([]*evidence.Record{sealed(t, h)}, h.Trust(t), func(name string, content []byte) error {
		return os.WriteFile(filepath.Join(dir, name), content, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	verified := func() error { return exec.Command("sh", filepath.Join(dir, openssl.Script)).Run() }
	if err := verified(); err != nil {
		t.Fatalf("openssl refuses the written files: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "payload.json"), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if verified() == nil {
		t.Error("another payload is accepted")
	}
}

func TestNothingIsWrittenThatCannotBeChecked(t *testing.T) {
	h := jurattest.New(t)
	record := sealed(t, h)
	waiting := *record
	waiting.Timestamps = nil
	for name, c := range map[string]struct {
		records []*evidence.Record
		trust   *trust.Trust
		want    error
	}{
		"no key":   {[]*evidence.Record{record}, &trust.Trust{}, openssl.ErrNoKey},
		"no stamp": {[]*evidence.Record{&waiting}, h.Trust(t), openssl.ErrNoStamp},
		"nothing":  {nil, h.Trust(t), nil},
	} {
		_, err := openssl.Write(c.records, c.trust, func(name string, _ []byte) error { t.Errorf("%s was written", name); return nil })
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	broken := errors.New("no space")
	if _, err := openssl.Write([]*evidence.Record{record}, h.Trust(t), func(string, []byte) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("no error for a file that cannot be written: %v", err)
	}
}
