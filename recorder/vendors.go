package recorder

import "maps"

// A Vendor is a provider whose SDKs are known.
type Vendor struct {
	Base     string // its address
	Variable string // the environment variable by which its SDKs are told another address
	Path     string // what that address ends in
	KeyIn    string // where its key goes, see Upstream
}

var vendors = map[string]Vendor{
	"openai":    {"https://api.openai.com", "OPENAI_BASE_URL", "/v1", "authorization"},
	"anthropic": {"https://api.anthropic.com", "ANTHROPIC_BASE_URL", "", "x-api-key"},
	"gemini":    {"https://generativelanguage.googleapis.com", "GOOGLE_GEMINI_BASE_URL", "", "x-goog-api-key"},
}

// Vendors are the providers that are known, by the name of their upstream.
func Vendors() map[string]Vendor { return maps.Clone(vendors) }

// Known returns upstreams that lead to all vendors.
func Known() map[string]Upstream {
	list := map[string]Upstream{}
	for name, v := range vendors {
		list[name] = Upstream{Base: v.Base, KeyIn: v.KeyIn}
	}
	return list
}
