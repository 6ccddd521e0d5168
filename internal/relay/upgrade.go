package relay

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// upgradeOf returns the protocol that a request asks to change to, or "".
func upgradeOf(header http.Header) string {
	for _, line := range header["Connection"] {
		for token := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(token), "upgrade") {
				return strings.Join(header["Upgrade"], ",")
			}
		}
	}
	return ""
}

// upgraded passes bytes both ways after the provider has changed the protocol. Nothing of them is kept.
func (h *Handler) upgraded(w http.ResponseWriter, answer *http.Response) error {
	provider, is := answer.Body.(io.ReadWriteCloser)
	if !is {
		return errors.New("the provider changed the protocol, and its connection cannot be written to")
	}
	defer provider.Close()
	conn, client, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return fmt.Errorf("taking over the connection of an upgrade: %w", err)
	}
	defer conn.Close()
	answer.Body = nil
	if err := answer.Write(client); err != nil {
		return fmt.Errorf("passing on an upgrade: %w", err)
	}
	if err := client.Flush(); err != nil {
		return fmt.Errorf("passing on an upgrade: %w", err)
	}
	ended := make(chan error, 2)
	go func() { _, err := io.Copy(provider, client); ended <- err }()
	go func() { _, err := io.Copy(conn, provider); ended <- err }()
	<-ended // the deferred calls end the other one
	return nil
}
