package installation

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/kit/fault"
	"jurat/internal/log/filestore"
)

// Beside the log, the servers of an installation share tickets and secrets. Neither is evidence, and neither is part of a backup.
const (
	ticketsFolder   = "tickets"
	ticketExtension = ".key"
	secretsFolder   = "servers"
)

// ErrNoTicket says that a ticket is unknown: it was used, it has expired, or no server gave it.
var ErrNoTicket = errors.New("it was used already, or has expired")

// A ticket can be used once, on any machine. Its file is named by the SHA-256 of its secret, and wrapped as a secret, although it holds none: who
// can write to the database, but lacks the wrapping key, cannot make a ticket and sign in with it.
type ticket struct {
	Until   time.Time      `json:"until"`
	Content jsontext.Value `json:"content"`
}

func ticketFile(secret string) string {
	sum := sha256.Sum256([]byte("jurat/ticket/v1\x00" + secret))
	return path.Join(ticketsFolder, hex.EncodeToString(sum[:])+ticketExtension)
}

// GiveTicket makes a ticket and returns its secret. It also removes expired tickets.
func (i *Installation) GiveTicket(ctx context.Context, content any, until time.Time) (secret string, err error) {
	defer fault.While(&err, "giving a ticket")
	if err := i.sweepTickets(ctx); err != nil {
		return "", err
	}
	t := ticket{Until: until.UTC()}
	if t.Content, err = json.Marshal(content); err != nil {
		return "", err
	}
	text, err := json.Marshal(t)
	if err != nil {
		return "", err
	}
	secret = rand.Text()
	if err := i.Files.Create(ctx, ticketFile(secret), append(text, '\n')); err != nil {
		return "", err
	}
	return secret, nil
}

// TakeTicket uses up a ticket and decodes its content into the value that content points to. If several callers take the same ticket, on
// any machines, one of them succeeds. The others get ErrNoTicket, which also says that the ticket has expired.
func (i *Installation) TakeTicket(ctx context.Context, secret string, content any) error {
	file := ticketFile(secret)
	t, err := i.readTicket(ctx, file)
	if err != nil {
		return err
	}
	if err := i.Files.Remove(ctx, file); errors.Is(err, fs.ErrNotExist) {
		return ErrNoTicket // another caller took it first
	} else if err != nil {
		return fmt.Errorf("taking a ticket: %w", err)
	}
	if !i.now().Before(t.Until) {
		return ErrNoTicket
	}
	return json.Unmarshal(t.Content, content, json.RejectUnknownMembers(true))
}

func (i *Installation) readTicket(ctx context.Context, file string) (t ticket, err error) {
	if err = filestore.ReadJSON(ctx, i.Files, file, &t); errors.Is(err, fs.ErrNotExist) {
		return t, ErrNoTicket
	}
	return t, err
}

func (i *Installation) sweepTickets(ctx context.Context) error {
	return i.Files.List(ctx, ticketsFolder, func(file string) error {
		if path.Ext(file) != ticketExtension {
			return nil
		}
		t, err := i.readTicket(ctx, file)
		if err == nil && i.now().Before(t.Until) || errors.Is(err, ErrNoTicket) {
			return nil
		}
		if err := i.Files.Remove(ctx, file); !errors.Is(err, fs.ErrNotExist) { // an unreadable ticket is removed, too
			return err
		}
		return nil
	})
}

// serverSecretSize is the size of what ServerSecret returns.
const serverSecretSize = 32

// ServerSecret returns 32 random bytes that all servers of the installation share, and that the first one that asks makes. purpose names the secret:
// different uses have different ones. It refuses a file of another length.
func (i *Installation) ServerSecret(ctx context.Context, purpose string) ([]byte, error) {
	file := path.Join(secretsFolder, purpose+".key")
	secret, err := i.Files.Read(ctx, file)
	if errors.Is(err, fs.ErrNotExist) {
		secret = make([]byte, serverSecretSize)
		rand.Read(secret) // never fails
		if err := i.Files.Create(ctx, file, secret); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("making a secret of the servers: %w", err)
		}
		secret, err = i.Files.Read(ctx, file) // another server may have made it
	}
	if err == nil && len(secret) != serverSecretSize {
		err = fmt.Errorf("%s: it has %d bytes, want %d: remove it, and the next server to start makes a new one", i.Files.Where(file), len(secret), serverSecretSize)
	}
	if err != nil {
		return nil, fmt.Errorf("reading a secret of the servers: %w", err)
	}
	return secret, nil
}
