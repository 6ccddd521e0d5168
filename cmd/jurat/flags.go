package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"jurat/evidence"
	"jurat/internal/installation"
	"jurat/internal/ledger/storage"
	"jurat/internal/names"
	"jurat/internal/plural"
	"jurat/internal/stamping"
	"jurat/internal/token"
)

// readSecret reads a secret from the file that a flag names.
func readSecret(flag, file string) (string, error) {
	text, err := readFile(file)
	secret := strings.TrimSpace(string(text))
	if err == nil && secret == "" {
		err = fmt.Errorf("%s is empty", file)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", flag, err)
	}
	return secret, nil
}

// A byteSize is a number of bytes, which may be written with a unit: 1073741824, 1024MiB or 1GiB.
type byteSize int64

// UnmarshalText reads a size.
func (b *byteSize) UnmarshalText(text []byte) error {
	number, unit := string(text), int64(1)
	for suffix, bytes := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if rest, ok := strings.CutSuffix(number, suffix); ok {
			number, unit = rest, bytes
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return fmt.Errorf("%q is not a size: want bytes, or a number with KiB, MiB or GiB", text)
	}
	*b = byteSize(n * unit)
	return nil
}

// A newName is the name of a person or an agent that a command line brings in. One that would deceive readers is refused before anything is
// opened or made.
type newName string

// UnmarshalText reads a name.
func (n *newName) UnmarshalText(text []byte) error {
	if err := names.Check(string(text)); err != nil {
		return err
	}
	*n = newName(text)
	return nil
}

// timeFlags reads flags that are times. Errors of kong's own reader show users the layouts of package time.
func timeFlags() []kong.Option {
	return []kong.Option{kong.TypeMapper(reflect.TypeFor[time.Time](), kong.MapperFunc(readTimeFlag)),
		kong.TypeMapper(reflect.TypeFor[*time.Time](), kong.MapperFunc(readTimeFlag))}
}

// readTimeFlag reads an RFC 3339 time, or what the tag format of the flag says.
func readTimeFlag(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("time", &text); err != nil {
		return err
	}
	layout, like := time.RFC3339, "a time such as 2026-01-31T16:15:00Z"
	if ctx.Value.Format == time.DateOnly {
		layout, like = time.DateOnly, "a day such as 2026-01-31"
	}
	read, err := time.Parse(layout, text)
	if err != nil {
		return fmt.Errorf("expected %s, and not %q", like, text)
	}
	if target.Kind() == reflect.Pointer {
		target.Set(reflect.ValueOf(&read))
	} else {
		target.Set(reflect.ValueOf(read))
	}
	return nil
}

// helperFlag says how tokens are reached.
type helperFlag struct {
	Helper string `name:"token-helper" placeholder:"HELPER" env:"JURAT_TOKEN_HELPER" help:"The program that reaches the token, such as 'jurat-pkcs11 --module FILE --pin-file FILE'. See docs/token.md."`
}

func (f helperFlag) helper() (string, error) {
	if f.Helper == "" {
		return "", hint(errors.New("--token: no helper is named"), "--token-helper or JURAT_TOKEN_HELPER says how the token is reached; docs/token.md is about it")
	}
	return f.Helper, nil
}

// find returns the key that a URI names, which is made if there is none. It returns nil if no URI is given.
func (f helperFlag) find(ctx context.Context, helper *token.Helper, uri string, algorithm evidence.Algorithm) (*token.Reference, error) {
	if uri == "" {
		return nil, nil
	}
	program, err := f.helper()
	if err != nil {
		return nil, err
	}
	helper.Use(program)
	reference, err := helper.FindOrGenerate(ctx, uri, algorithm)
	if err != nil {
		return nil, err
	}
	return &reference, nil
}

// known returns the keys that URIs name. Each must be there.
func (f helperFlag) known(ctx context.Context, helper *token.Helper, uris []string) ([]token.Reference, error) {
	var list []token.Reference
	for _, uri := range uris {
		program, err := f.helper()
		if err != nil {
			return nil, err
		}
		helper.Use(program)
		reference, err := helper.Find(ctx, uri)
		if err != nil {
			return nil, err
		}
		list = append(list, reference)
	}
	return list, nil
}

// stampFlags say who stamps.
type stampFlags struct {
	TSA []string `name:"tsa" sep:"none" placeholder:"NAME|URL" help:"Have exactly these configured authorities stamp (may be repeated); built-in is the operator's own clock. Default: the built-in one and all of 'jurat tsa'."`
}

// catchUp asks the authorities for the time stamps that records wait for, and prints how many still wait. It cannot fail: what was
// sealed stays sealed.
func catchUp(ctx context.Context, io stdio, i *installation.Installation) {
	outcomes, err := i.Timekeeper.Stamp(ctx, stamping.Order{CatchUp: true})
	if err != nil {
		fmt.Fprintf(io.err, "jurat: time: asking for what waits: %v\n", err)
	}
	for _, o := range outcomes {
		if o.Records > 0 && i.Timekeeper.Selected(o.Authority) {
			fmt.Fprintf(io.err, "jurat: time: waiting for %s; 'jurat log stamp' asks again%s\n", owed(o.Owed), because(o.Reason))
		}
	}
}

func owed(o storage.Owed) string {
	return fmt.Sprintf("%s since %s (%s)", o.Authority, evidence.FormatTime(o.Since), plural.Of(o.Records, "record"))
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}
