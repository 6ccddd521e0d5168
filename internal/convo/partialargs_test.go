package convo_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"jurat/internal/convo"
)

func pieces(paths ...string) string {
	var b strings.Builder
	b.WriteString("data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"name\":\"x\",\"willContinue\":true}}]}}]}\n\n")
	for _, path := range paths {
		b.WriteString("data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"partialArgs\":[{\"jsonPath\":\"" + path + "\",\"stringValue\":\"x\"}],\"willContinue\":true}}]}}]}\n\n")
	}
	return b.String()
}

// TestPartialArguments: values are where their paths say, and elements without a piece are empty objects.
func TestPartialArguments(t *testing.T) {
	a, err := convo.ReadGenerateStream([]byte(pieces("$.b[2]['c d'][1]", "$.b[0]", "$.a", "$.a") + "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(a.Candidates[0].Content.Parts[0].FunctionCall.Args), `{"a":"xx","b":["x",{},{"c d":[{},"x"]}]}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestPartialArgumentsAreBounded: paths that ask for many values take no memory out of proportion, and an error says that some are left out.
func TestPartialArgumentsAreBounded(t *testing.T) {
	var paths, calls []string
	for i := range 1_500 {
		paths = append(paths, fmt.Sprintf("$.n%d%s", i, strings.Repeat("[8]", 63)))
		calls = append(calls, pieces(fmt.Sprintf("$.n%s", strings.Repeat("[8]", 63))))
	}
	for name, stream := range map[string]string{"one call": pieces(paths...), "many calls": strings.ReplaceAll(strings.Join(calls, ""), `"stringValue":"x"}],"willContinue":true`, `"stringValue":"x"}],"willContinue":false`)} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		a, err := convo.ReadGenerateStream([]byte(stream))
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), "more than 65536 values: the others are left out") {
			t.Errorf("%s: %v", name, err)
		}
		if args := a.Candidates[0].Content.Parts[0].FunctionCall.Args; !strings.Contains(string(args), `[{},{},{},{},{},{},{},{},"x"]`) {
			t.Errorf("%s: what came before is lost: %.200s", name, args)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 50*uint64(len(stream)) {
			t.Errorf("%s: %d kB take %d MB", name, len(stream)/1000, used/1e6)
		}
	}
}

// TestLongPath: a path that takes long to read is refused.
func TestLongPath(t *testing.T) {
	for length, refused := range map[int]bool{4000: false, 5000: true} {
		_, err := convo.ReadGenerateStream([]byte(pieces("$['"+strings.Repeat("a", length)+"']") + "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n"))
		if got := err != nil && strings.Contains(err.Error(), "longer than 4096 bytes"); got != refused {
			t.Errorf("%d: %v", length, err)
		}
	}
}
