package recorder_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"jurat/recorder"
)

// An agent in Go asks its model through a recorder. Here a small server stands for the provider.
func Example() {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"id":"c1","object":"chat.completion","model":"wise-2026","choices":[{"index":0,"message":{"role":"assistant","content":"Two days."},"finish_reason":"stop"}]}`)
	}))
	defer provider.Close()
	folder, err := os.MkdirTemp("", "jurat-example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)

	ctx := context.Background()
	r, err := recorder.Open(ctx, recorder.Options{Folder: filepath.Join(folder, "jurat-data"), Agent: "support", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: r.Transport(nil)}

	monday := recorder.WithChain(ctx, "monday")
	question := `{"model":"wise","messages":[{"role":"user","content":"How long does a parcel take?"}]}`
	request, err := http.NewRequestWithContext(monday, http.MethodPost, provider.URL+"/v1/chat/completions", strings.NewReader(question))
	if err != nil {
		fmt.Println(err)
		return
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(request)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body) // in closed mode it ends when the record is in the log
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(strings.Contains(string(text), "Two days."))
	fmt.Println("sealed in", recorder.Chain("support", "monday"))
	fmt.Println("closed:", r.Close(ctx))
	// Output:
	// true
	// sealed in recorded/support/monday
	// closed: <nil>
}
