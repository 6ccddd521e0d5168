package config

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/webhook"
)

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
