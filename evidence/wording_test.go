package evidence_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
)

// TestSteady: whichever words the JSON library has chosen in this process, they are not what is said; what the error is stays.
func TestSteady(t *testing.T) {
	refused := json.Unmarshal([]byte(`{"a":1,"b":2}`), &struct{ A int }{}, json.RejectUnknownMembers(true))
	said := evidence.Steady(refused).Error()
	if !strings.HasPrefix(said, "json: cannot ") || !errors.Is(evidence.Steady(refused), refused) {
		t.Errorf("%s", said)
	}
	other := errors.New("json: unable to think")
	if got := evidence.Steady(other); got != other {
		t.Errorf("an error of somebody else is %v", got)
	}
	_, err := evidence.Open([]byte(`{"unknown":1}`))
	if err == nil || strings.Contains(err.Error(), "unable to") {
		t.Error(err)
	}
}
