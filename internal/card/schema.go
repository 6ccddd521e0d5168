package card

// A field is what the schema of A2A v1.0.1 (specification/a2a.proto) says of a member: whether it is required, and whether it is declared
// `optional`, which makes its default another thing than its absence.
type field struct {
	of       string // the message that stands there, or of which there is a list; "": none
	table    bool   // an object whose values are these messages
	required bool
	optional bool
}

// schema has each message of a card by its members' JSON names.
var schema = map[string]map[string]field{
	"AgentCard": {
		"name": {required: true}, "description": {required: true}, "version": {required: true},
		"supportedInterfaces": {of: "AgentInterface", required: true},
		"provider":            {of: "AgentProvider"},
		"documentationUrl":    {optional: true}, "iconUrl": {optional: true},
		"capabilities":         {of: "AgentCapabilities", required: true},
		"securitySchemes":      {table: true, of: "SecurityScheme"},
		"securityRequirements": {of: "SecurityRequirement"},
		"defaultInputModes":    {required: true}, "defaultOutputModes": {required: true},
		"skills": {of: "AgentSkill", required: true},
	},
	"AgentInterface": {"url": {required: true}, "protocolBinding": {required: true}, "tenant": {}, "protocolVersion": {required: true}},
	"AgentProvider":  {"url": {required: true}, "organization": {required: true}},
	"AgentCapabilities": {"streaming": {optional: true}, "pushNotifications": {optional: true},
		"extensions": {of: "AgentExtension"}, "extendedAgentCard": {optional: true}},
	"AgentExtension": {"uri": {}, "description": {}, "required": {}, "params": {}},
	"AgentSkill": {"id": {required: true}, "name": {required: true}, "description": {required: true}, "tags": {required: true},
		"examples": {}, "inputModes": {}, "outputModes": {}, "securityRequirements": {of: "SecurityRequirement"}},
	"SecurityRequirement": {"schemes": {table: true, of: "StringList"}},
	"StringList":          {"list": {}},
	"SecurityScheme": {"apiKeySecurityScheme": {of: "APIKeySecurityScheme", optional: true},
		"httpAuthSecurityScheme":      {of: "HTTPAuthSecurityScheme", optional: true},
		"oauth2SecurityScheme":        {of: "OAuth2SecurityScheme", optional: true},
		"openIdConnectSecurityScheme": {of: "OpenIdConnectSecurityScheme", optional: true},
		"mtlsSecurityScheme":          {of: "MutualTlsSecurityScheme", optional: true}},
	"APIKeySecurityScheme":        {"description": {}, "location": {required: true}, "name": {required: true}},
	"HTTPAuthSecurityScheme":      {"description": {}, "scheme": {required: true}, "bearerFormat": {}},
	"OAuth2SecurityScheme":        {"description": {}, "flows": {of: "OAuthFlows", required: true}, "oauth2MetadataUrl": {}},
	"OpenIdConnectSecurityScheme": {"description": {}, "openIdConnectUrl": {required: true}},
	"MutualTlsSecurityScheme":     {"description": {}},
	"OAuthFlows": {"authorizationCode": {of: "AuthorizationCodeOAuthFlow", optional: true},
		"clientCredentials": {of: "ClientCredentialsOAuthFlow", optional: true}, "implicit": {of: "ImplicitOAuthFlow", optional: true},
		"password": {of: "PasswordOAuthFlow", optional: true}, "deviceCode": {of: "DeviceCodeOAuthFlow", optional: true}},
	"AuthorizationCodeOAuthFlow": {"authorizationUrl": {required: true}, "tokenUrl": {required: true}, "refreshUrl": {},
		"scopes": {required: true}, "pkceRequired": {}},
	"ClientCredentialsOAuthFlow": {"tokenUrl": {required: true}, "refreshUrl": {}, "scopes": {required: true}},
	"ImplicitOAuthFlow":          {"authorizationUrl": {}, "refreshUrl": {}, "scopes": {}},
	"PasswordOAuthFlow":          {"tokenUrl": {}, "refreshUrl": {}, "scopes": {}},
	"DeviceCodeOAuthFlow": {"deviceAuthorizationUrl": {required: true}, "tokenUrl": {required: true}, "refreshUrl": {},
		"scopes": {required: true}},
}

// withoutDefaults leaves out each member of a message that has its default value and is neither required nor declared `optional`. Members
// that the schema does not know stay.
func withoutDefaults(message map[string]any, name string) map[string]any {
	out := make(map[string]any, len(message))
	for member, value := range message {
		f, known := schema[name][member]
		if known && f.of != "" {
			value = f.inside(value)
		}
		if !known || f.required || value != nil && (f.optional || !empty(value)) {
			out[member] = value
		}
	}
	return out
}

// inside does the same with the messages in a member's value. What is of another type stays.
func (f *field) inside(value any) any {
	switch v := value.(type) {
	case map[string]any:
		if !f.table {
			return withoutDefaults(v, f.of)
		}
		out := make(map[string]any, len(v))
		for key, one := range v {
			out[key] = (&field{of: f.of}).inside(one)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, one := range v {
			out[i] = f.inside(one)
		}
		return out
	}
	return value
}

// empty reports whether a value is its type's default.
func empty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case bool:
		return !v
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}
