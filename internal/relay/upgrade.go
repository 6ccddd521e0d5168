package relay

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// upgradeOf returns the protocols that a request asks to change to, or "". Offers to speak HTTP in another way are ignored, as RFC 9110, section 7.8, lets a server do:
// their clients go on with HTTP/1.1, which is recorded. Java's client makes such an offer in every call.
func upgradeOf(header http.Header) string {
	if !names(header["Connection"], "upgrade") {
		return ""
	}
	var list []string
	for token := range strings.SplitSeq(strings.Join(header["Upgrade"], ","), ",") {
		if token = textproto.TrimString(token); token != "" && !carriesHTTP(token) {
			list = append(list, token)
		}
	}
	return strings.Join(list, ", ")
}

// carriesHTTP reports whether a protocol is HTTP in another form: h2c of RFC 7540, HTTP/2.0, or TLS of RFC 2817.
func carriesHTTP(protocol string) bool {
	name, _, _ := strings.Cut(strings.ToLower(protocol), "/")
	return slices.Contains([]string{"h2c", "h2", "http", "tls"}, name)
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
