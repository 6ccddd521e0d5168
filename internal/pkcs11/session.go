package pkcs11

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"jurat/internal/token"
)

// Config says which token signs, and how.
type Config struct {
	Module        *Module
	Token         URI              // which token; the zero URI is the only one that is present
	PIN           []byte           // of the user; nothing here writes it anywhere
	Sessions      int              // open at once, and so calls at once; 0: 8
	Again         bool             // tries the PIN once although a wrong one was tried since the last right one
	AllowImported bool             // lets keys sign that the token does not say it made itself
	Now           func() time.Time // nil: time.Now
}

// A Token is a token that the user is logged in to. It is a token.Backend, and safe for concurrent use.
type Token struct {
	config Config
	places chan struct{} // one element for each call under way

	calls sync.RWMutex // read-locked during each call, locked while the library is initialised anew

	mu         sync.Mutex // held while sessions are opened, handed out or lost, and so during a login
	info       TokenInfo  // of the token of the first login
	holder     *session   // stays open: the user is logged out when the last session closes. nil: the user is logged out
	generation int        // counts how often all sessions were lost
	idle       []*session // open, with nothing under way
	keys       map[string]*found
	refused    error // the token's answer to the PIN, for good
	failed     error // why the last attempt failed
	next       time.Time
	wait       time.Duration
}

// A session is one connection to the token. One call at a time may use it.
type session struct {
	module     *Module
	handle     word
	generation int
}

func (s *session) call(function int, args ...uintptr) error {
	return s.module.call(function, append([]uintptr{s.handle}, args...)...)
}

// New returns a Token. The first call that needs the token looks for it and logs in.
func New(config Config) *Token {
	config.Sessions = cmp.Or(config.Sessions, 8)
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Token{config: config, places: make(chan struct{}, config.Sessions), keys: map[string]*found{}}
}

// Open logs in, if that has not been done. Its errors are those of every other call.
func (t *Token) Open(ctx context.Context) error {
	return t.with(ctx, func(*session) error { return nil })
}

// with calls do with a session. If the token turns out to be gone, with looks for it once more and repeats do.
func (t *Token) with(ctx context.Context, do func(*session) error) error {
	if err := t.enter(ctx); err != nil {
		return err
	}
	defer t.leave()
	err := t.once(do)
	if e := Error(0); errors.As(err, &e) && e.lost() {
		err = t.once(do)
	}
	if e := Error(0); errors.As(err, &e) && e.lost() {
		return fmt.Errorf("%w: %w", token.ErrUnavailable, err)
	}
	return err
}

// enter waits until one more call may be under way.
func (t *Token) enter(ctx context.Context) error {
	select {
	case t.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *Token) leave() { <-t.places }

// Close waits for calls that are under way, and ends the use of the library. The Token answers no call after it. It
// returns the context's error if calls do not end in time, and the errors of Module.Close.
func (t *Token) Close(ctx context.Context) error {
	for range cap(t.places) {
		if err := t.enter(ctx); err != nil {
			return fmt.Errorf("waiting for the token: %w", err)
		}
	}
	clear(t.config.PIN)
	return t.config.Module.Close()
}

// once calls do with a session. A session in which a call failed is not used again: an operation may still be under way in it.
func (t *Token) once(do func(*session) error) error {
	s, err := t.take(flagSerial)
	if err != nil {
		return err
	}
	t.calls.RLock()
	err = do(s)
	t.calls.RUnlock()
	if err == nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		if s.generation == t.generation {
			t.idle = append(t.idle, s)
		}
		return nil
	}
	return t.drop(s, err)
}

// drop closes a session in which err happened, and all others if err says that the token is gone. It returns err.
func (t *Token) drop(s *session, err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.generation != t.generation { // closed already
		return err
	}
	if e := Error(0); errors.As(err, &e) && e.lost() {
		t.lose()
		return err
	}
	return errors.Join(err, s.call(fnCloseSession))
}

// lose forgets all sessions. mu is held. That closing fails is expected: the token may be gone.
func (t *Token) lose() {
	_ = t.config.Module.call(fnCloseAllSessions, t.info.Slot)
	t.generation++
	t.holder, t.idle = nil, nil
	clear(t.keys)
}

// take returns a session, and logs the user in first if necessary.
func (t *Token) take(flags word) (*session, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holder == nil {
		if err := t.patientLogin(); err != nil {
			return nil, err
		}
	}
	if last := len(t.idle) - 1; last >= 0 && flags == flagSerial {
		s := t.idle[last]
		t.idle = t.idle[:last]
		return s, nil
	}
	s, err := t.open(flags)
	if e := Error(0); errors.As(err, &e) && e.lost() {
		t.lose()
	}
	return s, err
}

func (t *Token) open(flags word) (*session, error) {
	var p pinned
	defer p.Unpin()
	handle := pin(&p, new(word))
	if err := t.config.Module.call(fnOpenSession, t.info.Slot, flags, 0, 0, address(handle)); err != nil {
		return nil, fmt.Errorf("opening a session: %w", err)
	}
	return &session{t.config.Module, *handle, t.generation}, nil
}

// patientLogin logs in, unless that failed a moment ago. The moments grow from one second to half a minute.
func (t *Token) patientLogin() error {
	if t.refused != nil {
		return t.refused
	}
	now := t.config.Now()
	if now.Before(t.next) {
		return t.failed
	}
	if t.failed = t.login(); t.failed != nil {
		t.wait = min(max(2*t.wait, time.Second), 30*time.Second)
		t.next = now.Add(t.wait)
		return t.failed
	}
	t.wait = 0
	return nil
}

func (t *Token) login() error {
	info, err := t.present()
	if err != nil {
		return err
	}
	if err := t.mayTry(info); err != nil {
		return err
	}
	t.info = info
	s, err := t.open(flagSerial)
	if err != nil {
		return fmt.Errorf("%w: %w", token.ErrUnavailable, err)
	}
	t.config.Again = false // it allows one try
	var p pinned
	defer p.Unpin()
	err = s.call(fnLogin, userNormal, p.bytes(t.config.PIN), word(len(t.config.PIN)))
	if err == nil || errors.Is(err, errUserLoggedIn) {
		t.holder = s
		return nil
	}
	_ = s.call(fnCloseSession) // the login's error counts
	if e := Error(0); errors.As(err, &e) && e >= errPINIncorrect && e <= errPINLocked {
		clear(t.config.PIN)
		t.refused = fmt.Errorf("%w: token %q refuses the PIN: %w; it is not tried again", token.ErrPIN, info.Label, err)
		return t.refused
	}
	return fmt.Errorf("%w: logging in to token %q: %w", token.ErrUnavailable, info.Label, err)
}

// present finds the token, which must be the same as before. Some libraries see only the tokens that were there when they were
// initialised, so a missing token is looked for a second time by a library that is initialised anew.
func (t *Token) present() (TokenInfo, error) {
	tokens, err := t.fitting()
	if err == nil && len(tokens) == 0 {
		t.calls.Lock()
		err = t.config.Module.again()
		t.calls.Unlock()
		if err == nil {
			tokens, err = t.fitting()
		}
	}
	if err != nil {
		return TokenInfo{}, fmt.Errorf("%w: %w", token.ErrUnavailable, err)
	}
	switch {
	case len(tokens) == 0:
		return TokenInfo{}, fmt.Errorf("%w: no token %s is present", token.ErrUnavailable, t.config.Token)
	case len(tokens) > 1:
		return TokenInfo{}, fmt.Errorf("%w: %d tokens are present that fit %s; name one by its serial number", token.ErrRefused, len(tokens), t.config.Token)
	case t.info.Label != "" && (tokens[0].Serial != t.info.Serial || tokens[0].Model != t.info.Model):
		return TokenInfo{}, fmt.Errorf("%w: the token that is present has another serial number than the one before; it does not get the PIN", token.ErrUnavailable)
	}
	return tokens[0], nil
}

func (t *Token) fitting() ([]TokenInfo, error) {
	tokens, err := t.config.Module.Tokens()
	return slices.DeleteFunc(tokens, func(i TokenInfo) bool { return !t.config.Token.fits(i) }), err
}

// mayTry refuses to try a PIN that may be wrong, or may be the last try.
func (t *Token) mayTry(info TokenInfo) error {
	switch {
	case info.flags&tokenLocked != 0:
		return fmt.Errorf("%w: the PIN of token %q is locked", token.ErrPIN, info.Label)
	case info.flags&(tokenFinalTry|tokenCountLow) != 0 && !t.config.Again:
		return fmt.Errorf("%w: a wrong PIN of token %q was tried since the last right one, so this one is not tried; put it right, and allow one try", token.ErrPIN, info.Label)
	}
	return nil
}
