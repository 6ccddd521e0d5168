package installation_test

import "testing"

// TestVouch: an installation does not vouch for records that its own keys have not signed.
func TestVouch(t *testing.T) {
	config, mine := made(t)
	_, theirs := made(t)
	i := open(t, config)
	succeeds(t, i.Vouch(t.Context(), mine))
	if err := i.Vouch(t.Context(), mine, theirs); err == nil {
		t.Error("Vouch accepted a record of another installation")
	}
	changed := *mine
	changed.Signatures = [][]byte{append([]byte{}, mine.Signatures[0]...)}
	changed.Signatures[0][9] ^= 1
	if err := i.Vouch(t.Context(), &changed); err == nil {
		t.Error("Vouch accepted a record with an invalid signature")
	}
}
