package importing

import "errors"

// otel reads traces.
func (r *reader) otel() error {
	return r.broken("resourceSpans", errors.New("traces of OpenTelemetry are not read from files"))
}
