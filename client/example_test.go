package client_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"jurat/client"
	"jurat/client/api"
	"jurat/evidence"
	"jurat/internal/court/schedule"
	"jurat/internal/court/subject"
	"jurat/internal/court/trial"
	"jurat/internal/log/access"
	"jurat/internal/log/installation"
	"jurat/internal/log/keys"
	"jurat/internal/test/jurattest"
	"jurat/internal/web/server"
	"jurat/jury"
	"jurat/verify"
)

// serve runs a server for an example, as 'jurat serve' does, and returns a token for each role.
func serve() (url string, token func(name string, role access.Role) string, stop func()) {
	url, token, _, stop = serveTo()
	return url, token, stop
}

// serveTo also registers the public key of an agent that holds its key itself, as 'jurat keys new' does.
func serveTo() (url string, token func(name string, role access.Role) string, register func(agent string, public []byte), stop func()) {
	dir, err := os.MkdirTemp("", "")
	ok(err)
	ctx, cancel := context.WithCancel(context.Background())
	i, _, err := installation.OpenOrCreate(ctx, installation.Config{Dir: filepath.Join(dir, "data")})
	ok(err)
	trials, err := schedule.Open(ctx, schedule.Config{Ledger: i.Ledger, Keys: i.Keys, Locks: i.Locks, Sit: scripted})
	ok(err)
	s, err := server.New(ctx, server.Config{Installation: i, Scheduler: trials, Log: slog.New(slog.DiscardHandler)})
	ok(err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(err)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	token = func(name string, role access.Role) string {
		token, _, err := s.Access().Grant(ctx, access.Order{Name: name, Roles: []access.Role{role}, For: time.Hour, Reason: "an example", By: "somebody"})
		ok(err)
		return token
	}
	register = func(agent string, public []byte) {
		ok(i.Keys.Register(ctx, evidence.RoleAgent, agent, []keys.OwnerKey{{Public: public}}, time.Time{}, keys.Why{Reason: "an example", By: "somebody"}))
	}
	return "http://" + l.Addr().String(), token, register, func() {
		cancel()
		ok(<-ended)
		ok(i.Close())
		ok(os.RemoveAll(dir))
	}
}

// scripted seats jurors whose answers come from a script.
func scripted(*subject.Case, int64) trial.Config {
	jurors, judge := jurattest.Panel()
	return trial.Config{Settings: jurattest.Settings(jury.FinalJudge), Jurors: jurors, Judge: judge}
}

func ok(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

const routePayload = `{"agent_id": "logistics-agent-v1", "request_id": "r-1", "timestamp": "2026-01-31T16:15:00Z", "model": "gpt-4.1",
	"model_version": "gpt-4.1-2026-01", "prompt": "Plan the best route.", "response": "Take the A9.", "parameters": {}, "chain_id": "order-17"}`

func ExampleClient_Seal() {
	url, token, stop := serve()
	defer stop()
	c, err := client.NewClient(client.Config{URL: url, Token: token("logistics-agent-v1", access.Agent)})
	ok(err)
	record, err := c.Seal(context.Background(), []byte(routePayload))
	ok(err)
	fmt.Println(record.Payload.AgentID, string(record.Payload.Response), len(record.Timestamps))
	// Output: logistics-agent-v1 "Take the A9." 1
}

func ExampleClient_WithKey() {
	url, token, stop := serve()
	defer stop()
	c, err := client.NewClient(client.Config{URL: url, Token: token("logistics-agent-v1", access.Agent)})
	ok(err)
	first, err := c.WithKey("order 17, step 1").Seal(context.Background(), []byte(routePayload))
	ok(err)
	// After a crash, the client does not know whether the record was sealed:
	second, err := c.WithKey("order 17, step 1").Seal(context.Background(), []byte(routePayload))
	ok(err)
	fmt.Println(first.Payload.RecordID == second.Payload.RecordID)
	// Output: true
}

func ExampleClient_Deposit() {
	url, token, register, stop := serveTo()
	defer stop()
	public, private, err := ed25519.GenerateKey(nil)
	ok(err)
	der, err := evidence.MarshalPublicKey(public)
	ok(err)
	register("logistics-agent-v1", der) // from now on, no one else can sign for it

	signer, err := evidence.NewSigner(private, nil)
	ok(err)
	signed, err := client.Sign([]byte(routePayload), signer)
	ok(err)
	c, err := client.NewClient(client.Config{URL: url, Token: token("logistics-agent-v1", access.Agent)})
	ok(err)
	sealed, err := c.Deposit(context.Background(), signed)
	ok(err)
	trust, err := c.Trust(context.Background()) // whose fingerprint was compared
	ok(err)
	report, err := client.Check(signed, sealed, trust)
	ok(err)
	fmt.Println(report.Of(verify.NonRepudiation).Status)
	_, err = c.Seal(context.Background(), []byte(routePayload))
	fmt.Println(errors.Is(err, api.ErrOwnerKey))
	// Output:
	// proved
	// true
}

func ExampleClient_Record() {
	url, token, stop := serve()
	defer stop()
	c, err := client.NewClient(client.Config{URL: url, Token: token("logistics-agent-v1", access.Agent)})
	ok(err)
	sealed, err := c.Seal(context.Background(), []byte(routePayload))
	ok(err)
	record, err := c.Record(context.Background(), sealed.Payload.RecordID)
	ok(err)
	fmt.Println(record.Digest == sealed.Digest)
	_, err = c.Record(context.Background(), "no such id")
	fmt.Println(errors.Is(err, api.ErrNotFound))
	// Output:
	// true
	// true
}

func ExampleClient_Review() {
	url, token, stop := serve()
	defer stop()
	agent, err := client.NewClient(client.Config{URL: url, Token: token("logistics-agent-v1", access.Agent)})
	ok(err)
	said, err := agent.Seal(context.Background(), []byte(routePayload))
	ok(err)
	mia, err := client.NewClient(client.Config{URL: url, Token: token("mia", access.Reviewer)})
	ok(err)
	review, err := mia.Review(context.Background(), said.Payload.RecordID, api.Review{
		ApprovalStatus: "approved_with_modifications", ModifiedResponse: []byte(`"Take the A7."`), Changes: []byte(`"roadworks"`)})
	ok(err)
	fmt.Println(review.Payload.ReviewerID, review.Payload.ApprovalStatus, review.Payload.Saw[0] == said.Digest)
	// Output: mia approved_with_modifications true
}

func ExampleClient_Deliver() {
	url, token, stop := serve()
	defer stop()
	agent, err := client.NewClient(client.Config{URL: url, Token: token("logistics-agent-v1", access.Agent)})
	ok(err)
	said, err := agent.Seal(context.Background(), []byte(routePayload))
	ok(err)
	mia, err := client.NewClient(client.Config{URL: url, Token: token("mia", access.Reviewer)})
	ok(err)
	review, err := mia.Review(context.Background(), said.Payload.RecordID, api.Review{ApprovalStatus: "approved"})
	ok(err)
	delivery, err := agent.Deliver(context.Background(), said.Payload.RecordID, review.Payload.RecordID)
	ok(err)
	fmt.Println(delivery.Payload.ActionType, string(delivery.Payload.Response))
	// Output: delivery "Take the A9."
}

func ExampleClient_Chain() {
	url, token, stop := serve()
	defer stop()
	agent, err := client.NewClient(client.Config{URL: url, Token: token("logistics-agent-v1", access.Agent)})
	ok(err)
	_, err = agent.Seal(context.Background(), []byte(routePayload))
	ok(err)
	bundle, err := agent.Chain(context.Background(), "order-17")
	ok(err)
	trust, err := agent.Trust(context.Background()) // whose fingerprint was compared
	ok(err)
	report := verify.Bundle(bundle, verify.Options{Trust: trust})
	fmt.Println(len(bundle.Records), report.Of(verify.Content).Status, report.Of(verify.Chain).Status)
	// Output: 1 proved proved
}

func ExampleClient_Records() {
	url, token, stop := serve()
	defer stop()
	agent, err := client.NewClient(client.Config{URL: url, Token: token("logistics-agent-v1", access.Agent)})
	ok(err)
	_, err = agent.Seal(context.Background(), []byte(routePayload))
	ok(err)
	for entry, err := range agent.Records(context.Background(), "order-17") {
		ok(err)
		fmt.Println(entry.ActionType, entry.Actor, entry.RequestID)
	}
	// Output: model_output logistics-agent-v1 r-1
}

func ExampleClient_Trust() {
	url, _, stop := serve()
	defer stop()
	c, err := client.NewClient(client.Config{URL: url})
	ok(err)
	trust, err := c.Trust(context.Background())
	ok(err)
	fingerprint, err := trust.Fingerprint()
	ok(err)
	fmt.Println(len(fingerprint) > 0, "and to be compared over another channel")
	// Output: true and to be compared over another channel
}

func ExampleClient_Checkpoint() {
	url, _, stop := serve()
	defer stop()
	c, err := client.NewClient(client.Config{URL: url})
	ok(err)
	checkpoint, err := c.Checkpoint(context.Background())
	ok(err)
	fmt.Println(checkpoint[:10])
	// Output: jurat/log/
}

var parcelAgent = api.NewSubmission{
	AgentCard: json.RawMessage(`{"name": "Parcel agent", "description": "Tracks parcels.", "version": "1.0.0", "url": "https://parcels.example/a2a",
		"protocolVersion": "0.3.0", "skills": [{"id": "track", "name": "Track", "description": "Says where a parcel is.", "tags": ["parcel"]}]}`),
	Conversation: json.RawMessage(`[{"role": "user", "content": "Where is parcel 17?"}, {"role": "assistant", "content": "It is in Kassel."}]`),
}

func ExampleClient_Submit() {
	url, token, stop := serve()
	defer stop()
	c, err := client.NewClient(client.Config{URL: url, Token: token("sam", access.Submitter)})
	ok(err)
	submission, err := c.Submit(context.Background(), parcelAgent)
	ok(err)
	fmt.Println(submission.Agent, "by", submission.Submitter)
	// Output: Parcel agent by sam
}

func ExampleClient_Watch() {
	url, token, stop := serve()
	defer stop()
	c, err := client.NewClient(client.Config{URL: url, Token: token("sam", access.Submitter)})
	ok(err)
	submission, err := c.Submit(context.Background(), parcelAgent)
	ok(err)
	for event, err := range c.Watch(context.Background(), submission.ID, 0) {
		ok(err)
		if event.Type == "submission_received" || event.Type == "final_judgment" || event.Type == api.LastEvent {
			fmt.Println(event.Type)
		}
	}
	// Output:
	// submission_received
	// final_judgment
	// trial_closed
}

func ExampleClient_Submission() {
	c, id, stop := tried()
	defer stop()
	submission, err := c.Submission(context.Background(), id)
	ok(err)
	fmt.Println(submission.State, submission.Verdict.Position, submission.Result.TotalRounds)
	for _, vote := range submission.Votes.AfterPhase1.Votes {
		fmt.Println(vote.JurorID, *vote.Position)
	}
	// Output:
	// over safe_pass 1
	// juror-a safe_pass
	// juror-b unsafe_fail
	// juror-c safe_pass
}

func ExampleClient_Cancel() {
	c, id, stop := tried()
	defer stop()
	_, err := c.Cancel(context.Background(), id, "submitted by mistake")
	fmt.Println(errors.Is(err, api.ErrConflict)) // it has its verdict
	// Output: true
}

func ExampleClient_Submissions() {
	c, _, stop := tried()
	defer stop()
	for submission, err := range c.Submissions(context.Background()) {
		ok(err)
		fmt.Println(submission.Agent, submission.State, submission.Verdict.Score)
	}
	// Output: Parcel agent over 83
}

func ExampleClient_CaseFile() {
	c, id, stop := tried()
	defer stop()
	file, err := c.CaseFile(context.Background(), id)
	ok(err)
	trust, err := c.Trust(context.Background()) // for strangers, who compare it with one that they received elsewhere
	ok(err)
	fmt.Println(len(file.Records), "records:", verify.Bundle(file, verify.Options{Trust: trust}).Outcome)
	// Output: 15 records: proved
}

// tried returns a client of a server with a finished trial.
func tried() (c *client.Client, id string, stop func()) {
	url, token, stop := serve()
	c, err := client.NewClient(client.Config{URL: url, Token: token("sam", access.Submitter)})
	ok(err)
	submission, err := c.Submit(context.Background(), parcelAgent)
	ok(err)
	for _, err := range c.Watch(context.Background(), submission.ID, 0) {
		ok(err)
	}
	return c, submission.ID, stop
}
