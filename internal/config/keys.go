package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/webhook"
)

const maxKey = 4096 // bytes

// ErrNoKey says that a provider's key is missing.
var ErrNoKey = errors.New("there is no key")

// usualKeys are the environment variables that vendors' own programs read keys from, in order of preference.
var usualKeys = map[Provider][]string{
	OpenAI:    {"OPENAI_API_KEY"},
	Anthropic: {"ANTHROPIC_API_KEY"},
	Gemini:    {"GEMINI_API_KEY", "GOOGLE_API_KEY"},
}

// Lookup returns the value of an environment variable; "" if it is not set.
type Lookup func(name string) string

// key finds a member's key, and says where. It returns no key and no error for a member that needs none. A variable
// that is empty or has only spaces counts as not set.
func (m *Member) key(env Lookup) (key, from string, err error) {
	switch {
	case m.Provider == Rules, m.Provider == Compatible && m.Key == nil:
		return "", "", nil
	case m.Key != nil:
		return m.Key.find(env)
	}
	return keyIn(env, usualKeys[m.Provider]...)
}

// find returns the key from the place that was named, and says where that is.
func (k *Key) find(env Lookup) (key, from string, err error) {
	if k.File != "" {
		key, err = readKey(k.File)
		return key, "the file " + k.File, err
	}
	return keyIn(env, k.Env)
}

// keyIn returns the first key that these variables have.
func keyIn(env Lookup, names ...string) (key, from string, err error) {
	for _, name := range names {
		if key := strings.TrimSpace(env(name)); key != "" {
			return key, name, nil
		}
	}
	return "", "", fmt.Errorf("%w: %s is not set", ErrNoKey, strings.Join(names, " or "))
}

// readKey reads a key from a file. It refuses a file that other users may read.
func readKey(name string) (string, error) {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w: %w", ErrNoKey, err)
	}
	if err != nil {
		return "", err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is not a regular file", name)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0: // file modes on Windows do not show access rights
		return "", fmt.Errorf("%s can be read by others (mode %04o): chmod 600 it", name, info.Mode().Perm())
	}
	content, err := io.ReadAll(io.LimitReader(file, maxKey+1))
	if err != nil {
		return "", err
	}
	if len(content) > maxKey {
		return "", fmt.Errorf("%s is longer than a key", name)
	}
	key := strings.TrimSpace(strings.TrimPrefix(string(content), "\ufeff"))
	if key == "" {
		return "", fmt.Errorf("%w: %s is empty", ErrNoKey, name)
	}
	return key, nil
}

// A Webhook is the receiver that a server tells of cases that need a person: the section webhook of a file.
type Webhook struct {
	URL    string `json:"url"`
	Secret *Key   `json:"secret"`
	Old    *Key   `json:"old_secret,omitzero"` // signs, too, until the receiver knows the new one
	Inward bool   `json:"inward,omitzero"`     // it may be in a private network, and be reached by plain http
}

func (w *Webhook) check(here jsontext.Pointer) error {
	if w == nil {
		return nil
	}
	if err := webhook.CheckURL(w.URL, w.Inward); err != nil {
		return wrong(here+"/url", "%v", err)
	}
	if w.Secret == nil {
		return wrong(here, "want secret: {env: NAME} or {file: NAME}, which says where the secret is found")
	}
	return errors.Join(w.Secret.check(here+"/secret"), w.Old.check(here+"/old_secret"))
}

// Receiver finds the secrets and makes the receiver. It returns nil for a nil Webhook. Its errors do not repeat a secret, and include ErrNoKey.
func (w *Webhook) Receiver(env Lookup) (*webhook.Receiver, error) {
	if w == nil {
		return nil, nil
	}
	c := webhook.Config{URL: w.URL, Inward: w.Inward}
	for _, key := range []*Key{w.Secret, w.Old} {
		if key == nil {
			continue
		}
		secret, _, err := key.find(env)
		if err != nil {
			return nil, fmt.Errorf("webhook: %w", err)
		}
		c.Secrets = append(c.Secrets, secret)
	}
	r, err := webhook.New(c)
	if err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	return r, nil
}
