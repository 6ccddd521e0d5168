package operator

import (
	"strings"
	"testing"
)

func TestProtection(t *testing.T) {
	good := Protection{Kind: "pkcs11", Manufacturer: "Zürich HSM", Model: "m", Serial: strings.Repeat("1", 64)}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(p *Protection){
		"no kind":       func(p *Protection) { p.Kind = "" },
		"a long serial": func(p *Protection) { p.Serial += "1" },
		"a line feed":   func(p *Protection) { p.Model = "m\n" },
		"an escape":     func(p *Protection) { p.Manufacturer = "\x1b[2J" },
		"a C1 control":  func(p *Protection) { p.Model = "\u009b" },
		"not UTF-8":     func(p *Protection) { p.Model = "\xff" },
	} {
		p := good
		if spoil(&p); p.Check() == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
