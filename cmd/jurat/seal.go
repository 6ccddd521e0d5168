package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"jurat/client"
	"jurat/evidence"
	"jurat/internal/acts"
	"jurat/internal/installation"
	"jurat/internal/keys"
	"jurat/internal/ledger"
	"jurat/internal/token"
)

type sealCmd struct {
	File       string   `arg:"" optional:"" default:"-" help:"A payload in JSON, or a record that its owner has signed; - is standard input."`
	Signatures []string `name:"signature" placeholder:"FILE" help:"The owner's signature over FILE, which is canonical. Repeat it for a second one."`
	signFlags
	keyFlags
	stampFlags
	Apart    []string `help:"Seal this field apart: prompt, or /metadata/user_id. Only now: later it cannot be. May be given several times." placeholder:"POINTER" sep:"none"`
	Provable []string `help:"Seal this field apart so that 'jurat prove' can show properties of its value: /metadata/amount=decimal:2. May be given several times." placeholder:"POINTER=KIND" sep:"none"`
}

func (c *sealCmd) Run(ctx context.Context, a *app, io stdio) error {
	if c.SignOnly {
		return c.sign(ctx, io)
	}
	if len(c.Key)+len(c.Token)+len(c.Public) > 0 || c.Prepare {
		return hint(errors.New("--key, --token, --prepare and --public go with --sign-only"), "what an installation seals is signed with the keys that it has")
	}
	doc, err := readInput(io.in, c.File)
	if err != nil {
		return err
	}
	if len(c.Signatures) > 0 || evidence.BeginsAsRecord(doc) {
		if len(c.Apart)+len(c.Provable) > 0 {
			return hint(errors.New("--apart, --provable: what its owner has signed stays as it is; the owner seals apart before signing"),
				"'jurat seal --sign-only' takes the same flags")
		}
		return c.accept(ctx, a, io, doc)
	}
	draft, err := evidence.ParseDraft(doc)
	if err != nil {
		return hint(fmt.Errorf("refusing payload: %w", err), "'docs/format.md' lists the fields; nothing was recorded")
	}
	if err := acts.Sealable(&draft.Payload); err != nil {
		return hint(fmt.Errorf("refusing payload: %w", err), "acts of a trial are sealed by 'jurat trial' alone")
	}
	pointers, err := readPointers("--apart", c.Apart)
	if err != nil {
		return err
	}
	provable, err := readProvable(c.Provable)
	if err != nil {
		return err
	}
	return a.withStamps(ctx, io, c.keyFlags, c.stampFlags, func(i *installation.Installation) error {
		done, err := actsOn(i).Seal(ctx, acts.Order{By: acts.Operator, Apart: pointers, Provable: provable}, draft)
		if err != nil {
			return actHint(err)
		}
		if !done.Bound {
			fmt.Fprintf(io.err, "jurat: hint: the %s is not bound to what it is about: this log has no record %q\n",
				draft.ActionType, draft.OriginalResponseID)
		}
		return printSealed(ctx, io, i, done)
	})
}

// actsOn are the acts on an installation's log.
func actsOn(i *installation.Installation) *acts.Acts {
	return acts.New(acts.Config{Ledger: i.Ledger, Keys: i.Keys, Disclose: i.Apart.Disclose, Now: time.Now})
}

func printSealed(ctx context.Context, io stdio, i *installation.Installation, done *acts.Done) error {
	catchUp(ctx, io, i)
	proved, err := i.Ledger.ProveOne(ctx, done.Record)
	if err != nil {
		return err
	}
	id := done.Record.Payload.RecordID
	if done.Before {
		fmt.Fprintf(io.err, "jurat: hint: record %s was in the log already; nothing was added\n", id)
	}
	return hint(io.print(proved), "record %s is in the log; 'jurat log prove %s' prints it", id, id)
}

// signFlags say by what a payload is signed that another installation seals.
type signFlags struct {
	SignOnly bool     `name:"sign-only" help:"Only sign, with your own key: an installation elsewhere seals what is printed."`
	Key      []string `placeholder:"FILE" help:"With --sign-only: your private key, PKCS #8 in PEM. A second one makes the second signature."`
	Token    []string `placeholder:"URI" help:"With --sign-only: your private key on a token, in place of --key: pkcs11:token=LABEL;object=NAME."`
	helperFlag
	Prepare bool     `help:"With --sign-only: only print the bytes that are to be signed, for the keys that --public names."`
	Public  []string `placeholder:"FILE" help:"With --prepare: the public key in PEM. Repeat it for a second signature."`
}

func (c *sealCmd) sign(ctx context.Context, io stdio) (err error) {
	if len(c.Signatures) > 0 || c.TSA != nil || c.PostQuantum {
		return errors.New("--signature, --tsa and --pq are for what is sealed here, and not for --sign-only")
	}
	switch {
	case c.Prepare && (len(c.Public) == 0 || len(c.Key)+len(c.Token) > 0):
		return errors.New("--prepare takes the public keys with --public FILE, and neither --key nor --token")
	case c.Prepare && len(c.Apart)+len(c.Provable) > 0:
		return errors.New("--prepare prints only what is signed, and the texts of --apart and --provable would be lost: use --key or --token")
	case !c.Prepare && (len(c.Key)+len(c.Token) == 0 || len(c.Public) > 0):
		return hint(errors.New("want --key FILE or --token URI"), "or --prepare --public FILE, to sign with something else")
	}
	doc, err := readInput(io.in, c.File)
	if err != nil {
		return err
	}
	if c.Prepare {
		return c.prepare(io, doc)
	}
	signers, err := readKeys(c.Key, client.ParseKey)
	if err != nil {
		return err
	}
	helper := &token.Helper{}
	defer helper.Close()
	onToken, err := c.onToken(ctx, helper)
	if err != nil {
		return err
	}
	pointers, err := readPointers("--apart", c.Apart)
	if err != nil {
		return err
	}
	provable, err := readProvable(c.Provable)
	if err != nil {
		return err
	}
	signed, err := client.SignApart(doc, client.Apart{Pointers: pointers, Provable: provable}, append(signers, onToken...)...)
	if errors.Is(err, token.ErrUnavailable) {
		return err
	}
	if err != nil {
		return hint(err, "'docs/format.md' lists the fields")
	}
	return io.print(signed)
}

func (c *sealCmd) onToken(ctx context.Context, helper *token.Helper) ([]evidence.Signer, error) {
	references, err := c.known(ctx, helper, c.Token)
	if err != nil {
		return nil, err
	}
	var signers []evidence.Signer
	for _, r := range references {
		key, err := helper.Signer(r)
		if err != nil {
			return nil, err
		}
		signer, err := evidence.NewSigner(key, nil)
		if err != nil {
			return nil, err
		}
		signers = append(signers, signer)
	}
	return signers, nil
}

func (c *sealCmd) prepare(io stdio, doc []byte) error {
	keys, err := readKeys(c.Public, client.ParsePublicKey)
	if err != nil {
		return err
	}
	canonical, err := client.Prepare(doc, keys...)
	if err != nil {
		return hint(err, "'docs/format.md' lists the fields")
	}
	return io.document(canonical)
}

func readKeys[K any](files []string, parse func([]byte) (K, error)) ([]K, error) {
	var keys []K
	for _, file := range files {
		text, err := readFile(file)
		if err != nil {
			return nil, err
		}
		key, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// accept takes in what its owner has signed.
func (c *sealCmd) accept(ctx context.Context, a *app, io stdio, doc []byte) error {
	signed, err := c.signed(doc)
	if err != nil {
		return hint(fmt.Errorf("refusing record: %w", err), "'jurat seal --sign-only' makes what is taken in here; nothing was recorded")
	}
	if err := acts.Acceptable(&signed.Payload); err != nil {
		return fmt.Errorf("refusing record: %w", err)
	}
	return a.withStampers(ctx, c.TSA, func(i *installation.Installation) error {
		done, err := actsOn(i).Accept(ctx, acts.Operator, signed)
		if err != nil {
			return actHint(err)
		}
		p := &signed.Payload
		switch {
		case !done.Bound:
			fmt.Fprintf(io.err, "jurat: hint: the %s is not bound to what it is about: this log has no record %q\n", p.ActionType, p.OriginalResponseID)
		case !done.Names.IsZero():
			fmt.Fprintf(io.err, "jurat: hint: the %s is not bound to what it is about: it is signed without the digest of record %q in saw, which is %s\n",
				p.ActionType, p.OriginalResponseID, done.Names)
		}
		return printSealed(ctx, io, i, done)
	})
}

// signed reads a record file, or puts together a payload and signatures from files of their own.
func (c *sealCmd) signed(doc []byte) (*evidence.Record, error) {
	if len(c.Signatures) == 0 {
		r, _, err := evidence.Read(doc)
		return r, err
	}
	var signatures [][]byte
	for _, file := range c.Signatures {
		signature, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		signatures = append(signatures, signature)
	}
	return client.Assemble(doc, signatures...)
}

// actHint says what can be done where an act is refused.
func actHint(err error) error {
	var duplicate *ledger.DuplicateError
	var field *evidence.FieldError
	switch {
	case errors.As(err, &duplicate):
		return hint(err, "'jurat log prove %s' prints the one in the log; what is new needs a record_id of its own", duplicate.RecordID)
	case errors.As(err, &field) && field.Field == "saw":
		return hint(fmt.Errorf("refusing payload: %w", err), "a sealed record has its digest in the member 'digest'; nothing was recorded")
	case errors.As(err, &field):
		return hint(fmt.Errorf("refusing payload: %w", err), "'docs/format.md' lists the fields, 'jurat apart' what is always sealed apart; nothing was recorded")
	}
	return keyHint(err)
}

// keyHint says what can be done where a key stands in the way.
func keyHint(err error) error {
	const prepared = "sign it with 'jurat seal --sign-only --key FILE' where the key is, and seal what that prints"
	switch {
	case errors.Is(err, keys.ErrOwner):
		return hint(err, prepared)
	case errors.Is(err, keys.ErrNoKey):
		return hint(err, "'jurat keys rotate ROLE NAME' makes another; 'jurat keys list' shows what became of the old one")
	case errors.Is(err, keys.ErrEnded), errors.Is(err, keys.ErrIncomplete), errors.Is(err, keys.ErrForeign):
		return hint(err, "'jurat keys list' shows whose keys sign, and which together; nothing was recorded")
	case errors.Is(err, keys.ErrLost):
		return hint(err, "restore it from a backup of the data folder, or make another with 'jurat keys rotate ROLE NAME'")
	}
	return err
}
