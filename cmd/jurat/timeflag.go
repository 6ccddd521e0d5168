package main

import (
	"fmt"
	"reflect"
	"time"

	"github.com/alecthomas/kong"
)

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
