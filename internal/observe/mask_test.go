package observe_test

import (
	"strings"
	"testing"

	"jurat/internal/observe"
)

func TestMaskA2A(t *testing.T) {
	for body, want := range map[string]string{
		`{"params":{"configuration":{"pushNotificationConfig":{"token":"s3","authentication":{"credentials" : "a\"b"}}}}}`: `{"params":{"configuration":{"pushNotificationConfig":{"token":"**","authentication":{"credentials" : "****"}}}}}`,
		`{"message":{"parts":[{"data":{"token":"said"}}],"metadata":{"token":"said"}},"t\u006fken":"s3"}`:                  `{"message":{"parts":[{"data":{"token":"said"}}],"metadata":{"token":"said"}},"t\u006fken":"**"}`,
		`[{"token":"a"},{"token":"b"}]`:                               `[{"token":"*"},{"token":"*"}]`,
		`{"token":7,"credentials":{"token":"é"},"nextPageToken":"p"}`: `{"token":7,"credentials":{"token":"**"},"nextPageToken":"p"}`,
		`{"token":""}`:                               `{"token":""}`,
		`{"token":"a","token":"b","x":1e400}`:        `{"token":"*","token":"*","x":1e400}`,
		`{"a":"token"}`:                              `{"a":"token"}`,
		`not JSON "token": "abc`:                     `not JSON "token": "***`,
		`{"x":1} trailing {"credentials":"abc"}`:     `{"x":1} trailing {"credentials":"***"}`,
		`{"x":,"token":"abc"}`:                       `{"x":,"token":"***"}`,
		`{"parts":["` + "\x00" + `"],"token":"abc"}`: `{"parts":["` + "\x00" + `"],"token":"***"}`,
		``: ``,
		// what breaks off
		`{"token":"abc`:                                  `{"token":"***`,
		`{"a":{"t\u006fken" : "ab\"c`:                    `{"a":{"t\u006fken" : "*****`,
		`{"token":"ab\`:                                  `{"token":"***`,
		`{"token":"ab\q c","credentials":"d"`:            `{"token":"******","credentials":"*"`,
		`{"token":`:                                      `{"token":`,
		`{"parts":[{"text":"he`:                          `{"parts":[{"text":"he`,
		"{\"token\":\"a\nbc\"}":                          `{"token":"****"}`,
		"data: {\"t\\u006Fken\":\"abc\"}\n\ndata: {\"cr": "data: {\"t\\u006Fken\":\"***\"}\n\ndata: {\"cr",
	} {
		before := strings.Clone(body)
		masked, n := observe.MaskA2A([]byte(body))
		if string(masked) != want || (n > 0) != (want != body) || body != before {
			t.Errorf("%s:\n%s, want\n%s (%d)", body, masked, want, n)
		}
	}
}

func FuzzMaskA2A(f *testing.F) {
	f.Add([]byte(`{"token":"a"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		masked, n := observe.MaskA2A(body)
		if len(masked) != len(body) {
			t.Fatal("another length")
		}
		if again, more := observe.MaskA2A(masked); more > n || string(again) != string(masked) {
			t.Errorf("%q, and masked again %q", masked, again)
		}
	})
}
