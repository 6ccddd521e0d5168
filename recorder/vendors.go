package recorder

import "maps"

// A Vendor is a provider whose SDKs are known.
type Vendor struct {
	Base     string // its address
	Variable string // the environment variable by which its SDKs are told another address
	Path     string // what that address ends in
	KeyIn    string // where its key goes, see Upstream

	// Versioned are paths that lead to those below /v1: Anthropic's own SDKs add /v1 to the variable's address, and the AI SDK expects it there.
	Versioned []string
}

var vendors = map[string]Vendor{
	"openai":    {Base: "https://api.openai.com", Variable: "OPENAI_BASE_URL", Path: "/v1", KeyIn: "authorization"},
	"anthropic": {Base: "https://api.anthropic.com", Variable: "ANTHROPIC_BASE_URL", KeyIn: "x-api-key", Versioned: []string{"messages", "models", "files"}},
	"gemini":    {Base: "https://generativelanguage.googleapis.com", Variable: "GOOGLE_GEMINI_BASE_URL", KeyIn: "x-goog-api-key"},
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
