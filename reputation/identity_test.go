package reputation

import (
	"errors"
	"testing"

	"jurat/evidence"
	"jurat/verify/trust"
)

// TestIdentity: who the agent is, is for the trust file to say, and never guessed.
func TestIdentity(t *testing.T) {
	agents, jurors := []evidence.Role{evidence.RoleAgent}, []evidence.Role{evidence.RoleJuror}
	key := trust.Key{Name: "desk", Role: evidence.RoleAgent}
	one, other := trust.CA{Name: "one", Roles: agents}, trust.CA{Name: "other", Roles: agents}
	tests := map[string]struct {
		trust trust.Trust
		name  string
		ca    string
		by    string // "": refused
	}{
		"by its key":                                  {trust.Trust{Keys: []trust.Key{key}}, "desk", "", "keys"},
		"by its key, beside CAs":                      {trust.Trust{Keys: []trust.Key{key}, CAs: []trust.CA{one, other}}, "desk", "", "keys"},
		"by the CA, although it has a key":            {trust.Trust{Keys: []trust.Key{key}, CAs: []trust.CA{one, other}}, "desk", "other", "cas"},
		"by the only CA":                              {trust.Trust{CAs: []trust.CA{one}}, "desk", "", "cas"},
		"two CAs":                                     {trust.Trust{CAs: []trust.CA{one, other}}, "desk", "", ""},
		"two CAs of one name":                         {trust.Trust{CAs: []trust.CA{one, one}}, "desk", "one", ""},
		"a CA for others":                             {trust.Trust{CAs: []trust.CA{{Name: "one", Roles: jurors}}}, "desk", "", ""},
		"a CA that is not there":                      {trust.Trust{CAs: []trust.CA{one}}, "desk", "two", ""},
		"a key of the name in another role":           {trust.Trust{Keys: []trust.Key{{Name: "desk", Role: evidence.RoleJuror}}}, "desk", "", ""},
		"by its name, as recorders tell it":           {trust.Trust{Keys: []trust.Key{{Name: "gate", Role: evidence.RoleRecorder}}}, "desk", "", "keys"},
		"by a CA, beside recorders":                   {trust.Trust{Keys: []trust.Key{{Name: "gate", Role: evidence.RoleRecorder}}, CAs: []trust.CA{one}}, "desk", "", "cas"},
		"by a CA that is not there, beside recorders": {trust.Trust{Keys: []trust.Key{{Name: "gate", Role: evidence.RoleRecorder}}}, "desk", "two", ""},
		"no name": {trust.Trust{Keys: []trust.Key{key}}, "", "", ""},
	}
	for name, tt := range tests {
		me, err := identityOf(&tt.trust, tt.name, tt.ca)
		if (tt.by == "") != errors.Is(err, ErrIdentity) || err == nil && (me.By != tt.by || tt.ca != "" && me.CA != tt.ca) {
			t.Errorf("%s: %+v, %v", name, me, err)
		}
	}
}

// TestOwnSide: neighbours do not judge each other, as far as the trust file and the policy say who they are.
func TestOwnSide(t *testing.T) {
	byKey, byCA := Identity{Name: "desk", By: byKeys}, Identity{Name: "desk", By: byCAs, CA: "acme"}
	zoe := Rater{Role: evidence.RoleSubmitter, Name: "zoe", By: byKeys}
	certified := Rater{Role: evidence.RoleJuror, Name: "ren", By: byCAs, CA: "acme"}
	group := func(cas []string, actors ...Actor) func(*Policy) {
		return func(p *Policy) { p.Organisations = []Organisation{{Name: "group", Actors: actors, CAs: cas}} }
	}
	me := Actor{evidence.RoleAgent, "desk"}
	tests := map[string]struct {
		me     Identity
		rater  Rater
		policy func(*Policy)
		own    bool
	}{
		"a stranger":                        {byKey, zoe, nil, false},
		"the agent's name":                  {byKey, Rater{Role: evidence.RoleJuror, Name: "desk"}, nil, true},
		"the same CA":                       {byCA, certified, nil, true},
		"the same CA, shared by many":       {byCA, certified, func(p *Policy) { p.SharedCAs = []string{"acme"} }, false},
		"a CA, and an agent by its key":     {byKey, certified, nil, false},
		"no organisation on either side":    {byKey, Rater{Role: evidence.RoleJuror, Name: "ren", By: byKeys}, nil, false},
		"one group":                         {byKey, zoe, group(nil, me, Actor{evidence.RoleSubmitter, "zoe"}), true},
		"the name in another role":          {byKey, zoe, group(nil, me, Actor{evidence.RoleReviewer, "zoe"}), false},
		"a group without the agent":         {byKey, zoe, group(nil, Actor{evidence.RoleSubmitter, "zoe"}), false},
		"a group by the agent's CA":         {byCA, zoe, group([]string{"acme"}, Actor{evidence.RoleSubmitter, "zoe"}), true},
		"a group by the rater's CA":         {byKey, certified, group([]string{"acme"}, me), true},
		"a group of a CA that neither uses": {byKey, zoe, group([]string{"third"}, me), false},
	}
	for name, tt := range tests {
		p := DefaultPolicy()
		if tt.policy != nil {
			tt.policy(p)
		}
		c := &computation{facts: &Facts{Identity: tt.me}, policy: p}
		if c.ownSide(tt.rater) != tt.own {
			t.Errorf("%s: own side: %v, want %v", name, !tt.own, tt.own)
		}
	}
}
