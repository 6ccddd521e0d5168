// Package sdktest has the vendors' own SDKs, and that of the A2A project, judge the relay: what they make of a provider or an agent must be the same through
// it. It is a module of its own, so that jurat does not depend on the SDKs. scripts/test runs it.
package sdktest
