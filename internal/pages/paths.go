package pages

import "net/url"

// Paths of pages. Their identifiers come from records, so they are untrusted.

func submissionPath(id string) string { return "/submissions/" + url.PathEscape(id) }

func recordPath(id string) string { return "/records/" + url.PathEscape(id) }

func agentPath(name string) string { return "/v1/agents/" + url.PathEscape(name) + "/reputation" }

func chainPath(id string) string { return "/chains/" + url.PathEscape(id) }
