package main

import "testing"

func TestByteSize(t *testing.T) {
	for text, want := range map[string]byteSize{"0": 0, "1073741824": 1 << 30, "512MiB": 512 << 20, "1GiB": 1 << 30, "3KiB": 3 << 10} {
		var got byteSize
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "1MB", "1 GiB", "1.5GiB", "9223372036854775807KiB", "1GiBGiB"} {
		var got byteSize
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q: %d", text, got)
		}
	}
}
