package card

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// A field is what the schema of A2A v1.0.1 (specification/a2a.proto) says of a member: what stands there, whether it is required,
// and whether it is declared `optional`, which makes its default another thing than its absence.
type field struct {
	kind     kind
	of       string // the message, for one, list and table
	required bool
	optional bool
}

type kind int

const (
	text   kind = iota
	truth       // a boolean
	texts       // a list of texts
	labels      // an object whose values are texts
	free        // any JSON (google.protobuf.Struct)
	one         // a message
	list        // a list of messages
	table       // an object whose values are messages
)

// schema has each message of a card by its members' JSON names.
var schema = map[string]map[string]field{
	"AgentCard": {
		"name": {required: true}, "description": {required: true}, "version": {required: true},
		"supportedInterfaces": {kind: list, of: "AgentInterface", required: true},
		"provider":            {kind: one, of: "AgentProvider"},
		"documentationUrl":    {optional: true}, "iconUrl": {optional: true},
		"capabilities":         {kind: one, of: "AgentCapabilities", required: true},
		"securitySchemes":      {kind: table, of: "SecurityScheme"},
		"securityRequirements": {kind: list, of: "SecurityRequirement"},
		"defaultInputModes":    {kind: texts, required: true}, "defaultOutputModes": {kind: texts, required: true},
		"skills": {kind: list, of: "AgentSkill", required: true},
	},
	"AgentInterface": {"url": {required: true}, "protocolBinding": {required: true}, "tenant": {}, "protocolVersion": {required: true}},
	"AgentProvider":  {"url": {required: true}, "organization": {required: true}},
	"AgentCapabilities": {"streaming": {kind: truth, optional: true}, "pushNotifications": {kind: truth, optional: true},
		"extensions": {kind: list, of: "AgentExtension"}, "extendedAgentCard": {kind: truth, optional: true}},
	"AgentExtension": {"uri": {}, "description": {}, "required": {kind: truth}, "params": {kind: free}},
	"AgentSkill": {"id": {required: true}, "name": {required: true}, "description": {required: true}, "tags": {kind: texts, required: true},
		"examples": {kind: texts}, "inputModes": {kind: texts}, "outputModes": {kind: texts}, "securityRequirements": {kind: list, of: "SecurityRequirement"}},
	"SecurityRequirement": {"schemes": {kind: table, of: "StringList"}},
	"StringList":          {"list": {kind: texts}},
	"SecurityScheme": {"apiKeySecurityScheme": {kind: one, of: "APIKeySecurityScheme", optional: true},
		"httpAuthSecurityScheme":      {kind: one, of: "HTTPAuthSecurityScheme", optional: true},
		"oauth2SecurityScheme":        {kind: one, of: "OAuth2SecurityScheme", optional: true},
		"openIdConnectSecurityScheme": {kind: one, of: "OpenIdConnectSecurityScheme", optional: true},
		"mtlsSecurityScheme":          {kind: one, of: "MutualTlsSecurityScheme", optional: true}},
	"APIKeySecurityScheme":        {"description": {}, "location": {required: true}, "name": {required: true}},
	"HTTPAuthSecurityScheme":      {"description": {}, "scheme": {required: true}, "bearerFormat": {}},
	"OAuth2SecurityScheme":        {"description": {}, "flows": {kind: one, of: "OAuthFlows", required: true}, "oauth2MetadataUrl": {}},
	"OpenIdConnectSecurityScheme": {"description": {}, "openIdConnectUrl": {required: true}},
	"MutualTlsSecurityScheme":     {"description": {}},
	"OAuthFlows": {"authorizationCode": {kind: one, of: "AuthorizationCodeOAuthFlow", optional: true},
		"clientCredentials": {kind: one, of: "ClientCredentialsOAuthFlow", optional: true}, "implicit": {kind: one, of: "ImplicitOAuthFlow", optional: true},
		"password": {kind: one, of: "PasswordOAuthFlow", optional: true}, "deviceCode": {kind: one, of: "DeviceCodeOAuthFlow", optional: true}},
	"AuthorizationCodeOAuthFlow": {"authorizationUrl": {required: true}, "tokenUrl": {required: true}, "refreshUrl": {},
		"scopes": {kind: labels, required: true}, "pkceRequired": {kind: truth}},
	"ClientCredentialsOAuthFlow": {"tokenUrl": {required: true}, "refreshUrl": {}, "scopes": {kind: labels, required: true}},
	"ImplicitOAuthFlow":          {"authorizationUrl": {}, "refreshUrl": {}, "scopes": {kind: labels}},
	"PasswordOAuthFlow":          {"tokenUrl": {}, "refreshUrl": {}, "scopes": {kind: labels}},
	"DeviceCodeOAuthFlow": {"deviceAuthorizationUrl": {required: true}, "tokenUrl": {required: true}, "refreshUrl": {},
		"scopes": {kind: labels, required: true}},
}

// walk rebuilds a message member by member: each says what becomes of a member, and whether it stays. Members that are messages
// are walked first.
func walk(message map[string]any, name, at string, each func(f *field, value any) (any, bool)) (map[string]any, error) {
	out := make(map[string]any, len(message))
	for _, member := range slices.Sorted(maps.Keys(message)) {
		value, here := message[member], at+"/"+pointer(member)
		f, known := schema[name][member]
		if !known {
			if value, stays := each(nil, value); stays {
				out[member] = value
			}
			continue
		}
		inner, err := f.inside(value, here, each)
		if err != nil {
			return nil, err
		}
		if value, stays := each(&f, inner); stays {
			out[member] = value
		}
	}
	return out, nil
}

// inside walks the messages in a member's value. It fails if the value is not of the member's type. Null counts as absent.
func (f *field) inside(value any, at string, each func(*field, any) (any, bool)) (any, error) {
	if value == nil || f.kind == free {
		return value, nil
	}
	wrong := fmt.Errorf("%s: not what the schema of A2A v1.0 has there", at)
	switch v := value.(type) {
	case string:
		if f.kind == text {
			return v, nil
		}
	case bool:
		if f.kind == truth {
			return v, nil
		}
	case map[string]any:
		switch f.kind {
		case one:
			return walk(v, f.of, at, each)
		case labels:
			return v, allTexts(maps.Values(v), wrong)
		case table:
			return f.each(v, at, each)
		}
	case []any:
		switch f.kind {
		case texts:
			return v, allTexts(slices.Values(v), wrong)
		case list:
			return f.all(v, at, each)
		}
	}
	return nil, wrong
}

func (f *field) each(messages map[string]any, at string, each func(*field, any) (any, bool)) (any, error) {
	out := make(map[string]any, len(messages))
	for _, key := range slices.Sorted(maps.Keys(messages)) {
		inner, err := f.message(messages[key], at+"/"+pointer(key), each)
		if err != nil {
			return nil, err
		}
		out[key] = inner
	}
	return out, nil
}

func (f *field) all(messages []any, at string, each func(*field, any) (any, bool)) (any, error) {
	out := make([]any, len(messages))
	for i, message := range messages {
		inner, err := f.message(message, at+"/"+strconv.Itoa(i), each)
		if err != nil {
			return nil, err
		}
		out[i] = inner
	}
	return out, nil
}

func (f *field) message(value any, at string, each func(*field, any) (any, bool)) (any, error) {
	message, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s: want an object", at)
	}
	return walk(message, f.of, at, each)
}
