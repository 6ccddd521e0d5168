// Package sdktest has OpenTelemetry's own SDKs judge the receiver, and shows it what real instrumentations of a model's library tell. It is a module of its
// own, so that jurat does not depend on the exporters. scripts/test sdks runs it.
package sdktest
