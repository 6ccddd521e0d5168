package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"jurat/api"
	"jurat/client"
	"jurat/internal/access"
	"jurat/verify"
)

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
