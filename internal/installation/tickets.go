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
)

// What the servers of an installation have in common beside the log: tickets, and secrets of theirs. None of it is evidence,
// and none of it is in a backup.
const (
	ticketsFolder   = "tickets"
	ticketExtension = ".key"
	secretsFolder   = "servers"
)

// ErrNoTicket says that there is no such ticket: it was used, it has expired, or it was never given.
var ErrNoTicket = errors.New("it was used, or is too old")

// A ticket is good for one use, on whichever machine it is used. It is named by the SHA-256 of its secret, from which nobody
// finds that. Its file is kept as a secret, though nothing in it is one: so whoever can write into the database, and does not have the
// wrapping key, can make none, and sign in by it.
type ticket struct {
	Until   time.Time      `json:"until"`
	Content jsontext.Value `json:"content"`
}

func ticketFile(secret string) string {
	sum := sha256.Sum256([]byte("jurat/ticket/v1\x00" + secret))
	return path.Join(ticketsFolder, hex.EncodeToString(sum[:])+ticketExtension)
}

// GiveTicket makes a ticket and returns its secret. Those that have expired are removed by the way.
func (i *Installation) GiveTicket(ctx context.Context, content any, until time.Time) (secret string, err error) {
	if err := i.sweepTickets(ctx); err != nil {
		return "", fmt.Errorf("giving a ticket: %w", err)
	}
	t := ticket{Until: until.UTC()}
	if t.Content, err = json.Marshal(content); err != nil {
		return "", fmt.Errorf("giving a ticket: %w", err)
	}
	text, err := json.Marshal(t)
	if err != nil {
		return "", fmt.Errorf("giving a ticket: %w", err)
	}
	secret = rand.Text()
	if err := i.files.Create(ctx, ticketFile(secret), append(text, '\n')); err != nil {
		return "", fmt.Errorf("giving a ticket: %w", err)
	}
	return secret, nil
}

// TakeTicket uses a ticket up, and decodes its content into what is pointed to. Of all who do so with the same one, on any
// machine, one does, and the others get ErrNoTicket.
func (i *Installation) TakeTicket(ctx context.Context, secret string, content any) error {
	file := ticketFile(secret)
	t, err := i.readTicket(ctx, file)
	if err != nil {
		return err
	}
	if err := i.files.Remove(ctx, file); errors.Is(err, fs.ErrNotExist) {
		return ErrNoTicket // somebody was quicker
	} else if err != nil {
		return fmt.Errorf("taking a ticket: %w", err)
	}
	if !i.now().Before(t.Until) {
		return ErrNoTicket
	}
	return json.Unmarshal(t.Content, content, json.RejectUnknownMembers(true))
}

func (i *Installation) readTicket(ctx context.Context, file string) (t ticket, err error) {
	text, err := i.files.Read(ctx, file)
	if errors.Is(err, fs.ErrNotExist) {
		return t, ErrNoTicket
	}
	if err == nil {
		err = json.Unmarshal(text, &t, json.RejectUnknownMembers(true))
	}
	if err != nil {
		return t, fmt.Errorf("reading %s: %w", i.files.Where(file), err)
	}
	return t, nil
}

func (i *Installation) sweepTickets(ctx context.Context) error {
	return i.files.List(ctx, ticketsFolder, func(file string) error {
		if path.Ext(file) != ticketExtension {
			return nil
		}
		t, err := i.readTicket(ctx, file)
		if err == nil && i.now().Before(t.Until) || errors.Is(err, ErrNoTicket) {
			return nil
		}
		if err := i.files.Remove(ctx, file); !errors.Is(err, fs.ErrNotExist) { // one that cannot be read is of no use either
			return err
		}
		return nil
	})
}

// serverSecretSize is the size of what ServerSecret returns.
const serverSecretSize = 32

// ServerSecret returns 32 random bytes that all servers of the installation have, and nobody else: the first that asks for them makes
// them. purpose tells them from others.
func (i *Installation) ServerSecret(ctx context.Context, purpose string) ([]byte, error) {
	file := path.Join(secretsFolder, purpose+".key")
	secret, err := i.files.Read(ctx, file)
	if errors.Is(err, fs.ErrNotExist) {
		secret = make([]byte, serverSecretSize)
		rand.Read(secret) // never fails
		if err := i.files.Create(ctx, file, secret); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("making a secret of the servers: %w", err)
		}
		secret, err = i.files.Read(ctx, file) // which another server may have made
	}
	if err == nil && len(secret) != serverSecretSize {
		err = fmt.Errorf("%s: it has %d bytes, want %d: remove it, and the next server that starts makes another", i.files.Where(file), len(secret), serverSecretSize)
	}
	if err != nil {
		return nil, fmt.Errorf("reading a secret of the servers: %w", err)
	}
	return secret, nil
}
