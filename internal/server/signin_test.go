package server

import "testing"

// TestOwnPath: the sign-in page never sends a browser to another site.
func TestOwnPath(t *testing.T) {
	for next, want := range map[string]string{"": "/", "/reviews": "/reviews", "/records/x?lang=ja": "/records/x?lang=ja", "https://elsewhere.example": "/",
		"//elsewhere.example": "/", `/\elsewhere.example`: "/", "javascript:alert(1)": "/", "reviews": "/", "/\t/elsewhere.example": "/", "/%": "/"} {
		if got := ownPath(next); got != want {
			t.Errorf("ownPath(%q) = %q, want %q", next, got, want)
		}
	}
}
