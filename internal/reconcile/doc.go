// Package reconcile compares the calls that recorders sealed with a provider's own account of usage. It finds calls that the provider counts and the log has not, and
// the other way round. Who counts what is not trusted: a difference is named, and whose fault it is stays open.
//
// # What the files look like
//
// A file is known by its members or columns:
//
//   - OpenAI's usage API, GET /v1/organization/usage/completions: pages of buckets, as OpenAI's OpenAPI description 2.3.0 has them (UsageResponse, UsageTimeBucket,
//     UsageCompletionsResult)
//   - the export of OpenAI's usage dashboard, completions_usage_*.csv, as it was in October 2025
//   - Anthropic's Admin API, GET /v1/organizations/usage_report/messages, version 2023-06-01
//   - the export of Anthropic's Console, as it was in 2026: one line for each UTC day, model and key
//   - one line of CSV or JSON for each call: request_id, time, model, input_tokens, output_tokens
//
// # A call on an edge is undecided
//
// Nobody says whether a provider counts a call when it begins or when it ends, and clocks differ. So a call that lies across an edge of a bucket, or within the slack of
// one, may stand on either side. Sums of buckets are therefore compared as ranges, and buckets that follow each other also together, where the edges between them do not matter.
//
// # What a call did not say
//
// The provider reports usage in the answer. A call whose answer broke off, or whose stream was asked for without usage, has none. It can account for any number of tokens,
// but only for one request.
package reconcile
