// Package agent is a program outside of jurat's module, as a builder's is: it knows jurat by its public packages alone.
package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"jurat/recorder"
)

// TestOutsideProgram: an agent that uses OpenAI's SDK is recorded with three lines of code. Jurat's command lists the calls, and verifies them. What cannot be recorded is an
// error of the SDK's own call.
func TestOutsideProgram(t *testing.T) {
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Jurat-Chain") != "" {
			t.Error("the provider got jurat's headers")
		}
		var question struct {
			Stream bool `json:"stream"`
		}
		if err := json.NewDecoder(r.Body).Decode(&question); err != nil {
			t.Error(err)
		}
		if question.Stream {
			w.Header().Set("Content-Type", "text/event-stream")
			for _, word := range []string{"Two ", "days."} {
				fmt.Fprintf(w, "data: {\"id\":\"c2\",\"object\":\"chat.completion.chunk\",\"model\":\"wise-2026\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", word)
			}
			fmt.Fprint(w, "data: {\"id\":\"c2\",\"object\":\"chat.completion.chunk\",\"model\":\"wise-2026\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"id":"c1","object":"chat.completion","created":1,"model":"wise-2026","choices":[{"index":0,"message":{"role":"assistant","content":"Two days."},"finish_reason":"stop"}]}`)
	}))
	defer model.Close()
	folder := filepath.Join(t.TempDir(), "jurat-data")
	r, err := recorder.Open(t.Context(), recorder.Options{Folder: folder, Agent: "support"})
	if err != nil {
		t.Fatal(err)
	}
	client := openai.NewClient(option.WithBaseURL(model.URL+"/v1"), option.WithAPIKey("marked-key"), option.WithMaxRetries(0), option.WithHTTPClient(&http.Client{Transport: r.Transport(nil)}))
	params := openai.ChatCompletionNewParams{Model: "wise", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("How long does a parcel take?")}}
	ctx := recorder.WithChain(t.Context(), "monday")
	answer, err := client.Chat.Completions.New(ctx, params)
	if err != nil || answer.Choices[0].Message.Content != "Two days." {
		t.Fatalf("%v, %v", answer, err)
	}
	stream := client.Chat.Completions.NewStreaming(ctx, params)
	said := ""
	for stream.Next() {
		said += stream.Current().Choices[0].Delta.Content
	}
	if err := errors.Join(stream.Err(), stream.Close()); err != nil || said != "Two days." {
		t.Fatalf("%q, %v", said, err)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Chat.Completions.New(ctx, params); err == nil {
		t.Error("a call passed after the recorder was closed")
	}

	jurat := filepath.Join(t.TempDir(), "jurat")
	build := exec.Command("go", "build", "-o", jurat, "./cmd/jurat")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	found, err := exec.Command(jurat, "--data", folder, "records", "--action", "observed_call", "--json").Output()
	if err != nil || strings.Count(string(found), recorder.Chain("support", "monday")) < 2 {
		t.Errorf("%v\n%s", err, found)
	}
	trust, file := filepath.Join(t.TempDir(), "trust.json"), filepath.Join(t.TempDir(), "monday.jurat")
	out, err := exec.Command("sh", "-c", `"$0" --data "$1" trust > "$2" && "$0" --data "$1" log prove "$3" > "$4" && "$0" verify --trust "$2" "$4"`, jurat, folder, trust, recorder.Chain("support", "monday"), file).CombinedOutput()
	if !strings.Contains(string(out), "seen inside the agent's own process") || strings.Contains(string(out), "refuted") {
		t.Errorf("%v\n%s", err, out)
	}
}
