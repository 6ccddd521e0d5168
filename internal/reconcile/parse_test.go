package reconcile

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

const openaiPage = `{"object":"page","data":[
 {"object":"bucket","start_time":1764201600,"end_time":1764205200,"results":[
  {"object":"organization.usage.completions.result","input_tokens":1000,"output_tokens":500,"input_cached_tokens":800,"num_model_requests":5,"project_id":null,"model":"gpt-4o-2024-08-06","batch":null}]},
 {"object":"bucket","start_time":1764205200,"end_time":1764208800,"results":[]}],"has_more":false,"next_page":null}
`

const anthropicPage = `{"data":[{"starting_at":"2025-11-27T00:00:00Z","ending_at":"2025-11-28T00:00:00Z","results":[
 {"uncached_input_tokens":1500,"cache_creation":{"ephemeral_1h_input_tokens":1000,"ephemeral_5m_input_tokens":500},"cache_read_input_tokens":200,"output_tokens":500,
  "server_tool_use":{"web_search_requests":10},"api_key_id":"apikey_1","workspace_id":null,"model":"claude-sonnet-4","service_tier":"standard","context_window":"0-200k"}]}],"has_more":false,"next_page":null}`

const dashboard = "start_time,end_time,start_time_iso,end_time_iso,project_id,num_model_requests,user_id,api_key_id,model,batch,service_tier,input_tokens,output_tokens,input_cached_tokens,input_uncached_tokens\n" +
	"1764201600,1764205200,2025-11-27T00:00:00+00:00,2025-11-27T01:00:00+00:00,proj_1,3.0,,key_1,gpt-4o-2024-08-06,,default,4212,1673,0,4212\n" +
	"1764205200,1764208800,2025-11-27T01:00:00+00:00,2025-11-27T02:00:00+00:00,,,,,,,,,,,\n"

const console = "usage_date_utc,model_version,api_key,workspace,usage_type,context_window,usage_input_tokens_no_cache,usage_input_tokens_cache_write_5m,usage_input_tokens_cache_write_1h,usage_input_tokens_cache_read,usage_output_tokens,web_search_count,inference_geo,speed\n" +
	"2025-11-28,claude-sonnet-4,key,Default,standard,≤ 200k,10,1,2,3,5,0,global,\n" +
	"2025-11-27,claude-sonnet-4,key,\"A, B\",standard,≤ 200k,100,0,0,0,50,0,global,\n"

// TestParse reads each form of file.
func TestParse(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	hour0, hour1, hour2 := time.Unix(1764201600, 0).UTC(), time.Unix(1764205200, 0).UTC(), time.Unix(1764208800, 0).UTC()
	for name, c := range map[string]struct {
		text string
		zone *time.Location
		want Export
	}{
		"OpenAI's API": {openaiPage, nil, Export{Format: "OpenAI, usage API", Vendor: "openai", Buckets: []Bucket{
			{From: hour0, To: hour1, Model: "gpt-4o-2024-08-06", Requests: new(int64(5)), Tokens: Tokens{1000, 500}, Line: 1}, {From: hour1, To: hour2, Empty: true, Line: 1}}}},
		"pages in an array": {"[" + strings.Replace(openaiPage, `"has_more":false`, `"has_more":true`, 1) + "," + strings.NewReplacer("1764201600", "1764208800", "1764205200", "1764212400", "1764208800", "1764216000").Replace(openaiPage) + "]", nil,
			Export{Format: "OpenAI, usage API", Vendor: "openai", Buckets: []Bucket{
				{From: hour0, To: hour1, Model: "gpt-4o-2024-08-06", Requests: new(int64(5)), Tokens: Tokens{1000, 500}, Line: 1}, {From: hour1, To: hour2, Empty: true, Line: 1},
				{From: hour2, To: hour2.Add(time.Hour), Model: "gpt-4o-2024-08-06", Requests: new(int64(5)), Tokens: Tokens{1000, 500}, Line: 5}, {From: hour2.Add(time.Hour), To: hour2.Add(2 * time.Hour), Empty: true, Line: 5}}}},
		"Anthropic's API": {anthropicPage, nil, Export{Format: "Anthropic, usage report", Vendor: "anthropic", Buckets: []Bucket{
			{From: at("2025-11-27T00:00:00Z"), To: at("2025-11-28T00:00:00Z"), Model: "claude-sonnet-4", Tokens: Tokens{3200, 500}, Line: 1}}}},
		"OpenAI's dashboard": {"\xef\xbb\xbf" + dashboard, nil, Export{Format: "OpenAI, usage dashboard", Vendor: "openai", Buckets: []Bucket{
			{From: hour0, To: hour1, Model: "gpt-4o-2024-08-06", Requests: new(int64(3)), Tokens: Tokens{4212, 1673}, Line: 2}, {From: hour1, To: hour2, Empty: true, Line: 3}}}},
		"the same with tabs": {strings.ReplaceAll(dashboard, ",", "\t"), nil, Export{Format: "OpenAI, usage dashboard", Vendor: "openai", Buckets: []Bucket{
			{From: hour0, To: hour1, Model: "gpt-4o-2024-08-06", Requests: new(int64(3)), Tokens: Tokens{4212, 1673}, Line: 2}, {From: hour1, To: hour2, Empty: true, Line: 3}}}},
		"Anthropic's Console": {console, nil, Export{Format: "Anthropic, Console", Vendor: "anthropic", Buckets: []Bucket{
			{From: at("2025-11-27T00:00:00Z"), To: at("2025-11-28T00:00:00Z"), Model: "claude-sonnet-4", Tokens: Tokens{100, 50}, Line: 3},
			{From: at("2025-11-28T00:00:00Z"), To: at("2025-11-29T00:00:00Z"), Model: "claude-sonnet-4", Tokens: Tokens{16, 5}, Line: 2}}}},
		"calls in CSV": {"request_id,time,model,input_tokens,output_tokens\nreq_1,2025-11-27 12:00:00,m,9,4\nreq_2,2025-11-27T12:00:00+09:00,m,9,4\n", berlin, Export{Format: "calls, CSV", Rows: []Row{
			{ID: "req_1", Time: at("2025-11-27T11:00:00Z"), Model: "m", Tokens: Tokens{9, 4}, Line: 2}, {ID: "req_2", Time: at("2025-11-27T03:00:00Z"), Model: "m", Tokens: Tokens{9, 4}, Line: 3}}}},
		"calls in lines of JSON": {`{"request_id":"req_1","time":"2025-11-27T12:00:00Z","model":"m","input_tokens":9,"output_tokens":4}` + "\n" + `{"request_id":"req_2","time":"2025-11-27T12:00:00Z","input_tokens":0,"output_tokens":0}`, nil,
			Export{Format: "calls, JSON lines", Rows: []Row{{ID: "req_1", Time: at("2025-11-27T12:00:00Z"), Model: "m", Tokens: Tokens{9, 4}, Line: 1}, {ID: "req_2", Time: at("2025-11-27T12:00:00Z"), Line: 2}}}},
	} {
		e, err := Parse([]byte(c.text), c.zone)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if e.SHA256.IsZero() {
			t.Errorf("%s: no digest", name)
		}
		c.want.SHA256 = e.SHA256
		if diff := cmp.Diff(&c.want, e); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// TestParseFaults: a bad file is refused with its line and field.
func TestParseFaults(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		line  int
		field string
	}{
		"no number":              {strings.Replace(dashboard, "4212,1673", "many,1673", 1), 2, "input_tokens"},
		"half a token":           {strings.Replace(dashboard, "4212,1673", "4212,1.5", 1), 2, "output_tokens"},
		"negative":               {strings.Replace(dashboard, "4212,1673", "4212,-1", 1), 2, "output_tokens"},
		"no date":                {strings.Replace(console, "2025-11-27", "27.11.2025", 1), 3, "usage_date_utc"},
		"no zone":                {"request_id,time,input_tokens,output_tokens\na,2025-11-27 12:00:00,1,1\n", 2, "time"},
		"no time":                {"request_id,time,input_tokens,output_tokens\na,noon,1,1\n", 2, "time"},
		"no id":                  {"request_id,time,input_tokens,output_tokens\n,2025-11-27T12:00:00Z,1,1\n", 2, "request_id"},
		"a line twice":           {dashboard + strings.SplitAfter(dashboard, "\n")[1], 4, ""},
		"a day twice":            {console + strings.SplitAfter(console, "\n")[2], 4, ""},
		"a page twice":           {openaiPage + openaiPage, 5, "results"},
		"Google's billing":       {"Service description,SKU ID,SKU description,Usage amount,Usage unit\na,b,c,1,count\n", 1, ""},
		"Google's billing, JSON": {`{"billing_account_id":"x","service":{"id":"1","description":"Gemini API"},"sku":{"id":"1","description":"tokens"},"usage":{"amount":9,"unit":"count"}}`, 1, "sku"},
		"an id twice":            {"request_id,time,input_tokens,output_tokens\na,2025-11-27T12:00:00Z,1,1\na,2025-11-27T12:00:00Z,1,1\n", 3, "request_id"},
		"too few cells":          {"request_id,time,input_tokens,output_tokens\na,b\n", 2, ""},
		"unknown columns":        {"a,b\n1,2\n", 1, ""},
		"costs":                  {"start_time,end_time,amount_value\n1764201600,1764205200,0.8\n", 1, ""},
		"more pages":             {strings.Replace(openaiPage, `"has_more":false`, `"has_more":true`, 1), 1, "has_more"},
		"a text for a count":     {strings.Replace(openaiPage, `"input_tokens":1000`, `"input_tokens":"1000"`, 1), 3, "/data/0/results/0/input_tokens"},
		"broken JSON":            {openaiPage[:200], 3, ""},
		"a page of costs":        {`{"data":[{"start_time":1,"end_time":2,"results":[{"amount":{"value":1}}]}]}`, 1, "results"},
		"buckets without times":  {`{"data":[{"results":[]}]}`, 1, "data"},
		"two providers":          {openaiPage + anthropicPage, 5, "data"},
		"a bucket that is empty": {`{"data":[{"start_time":2,"end_time":2,"results":[]}]}`, 1, ""},
		"buckets that overlap":   {dashboard + "1764201600,1764288000,,,,1,,,m,,,1,1,,\n", 4, ""},
		"a line without tokens":  {`{"request_id":"a","time":"2025-11-27T12:00:00Z","output_tokens":4}`, 1, "input_tokens"},
	} {
		_, err := Parse([]byte(c.text), nil)
		f, is := errors.AsType[*Fault](err)
		if !is || f.Line != c.line || c.field != "" && f.Field != c.field {
			t.Errorf("%s: %v, want line %d, field %q", name, err, c.line, c.field)
		}
	}
	for _, text := range []string{"", " \n", "request_id,time,input_tokens,output_tokens\n", `{"data":[]}`} {
		if _, err := Parse([]byte(text), nil); err == nil {
			t.Errorf("%q is a file", text)
		}
	}
}

// FuzzParse: no file makes the reader panic, and what it reads has a time and no negative count.
func FuzzParse(f *testing.F) {
	for _, text := range []string{openaiPage, anthropicPage, dashboard, console, "request_id,time,input_tokens,output_tokens\na,2025-11-27T12:00:00Z,1,1\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := Parse(text, time.UTC)
		if err != nil {
			return
		}
		for _, b := range e.Buckets {
			if b.Input < 0 || b.Output < 0 || !b.From.Before(b.To) {
				t.Errorf("%+v", b)
			}
		}
		Compare(e, nil, Order{})
	})
}

// TestManyLines: lines are counted on, and not from the beginning for each.
func TestManyLines(t *testing.T) {
	var b strings.Builder
	for n := range 300_000 {
		fmt.Fprintf(&b, `{"request_id":"request_%d","time":"2026-11-27T00:00:00Z","model":"gpt-4o-2024-08-06","input_tokens":1,"output_tokens":2}`+"\n", n)
	}
	began := time.Now()
	e, err := Parse([]byte(b.String()), nil)
	if took := time.Since(began); err != nil || took > 30*time.Second || e.Rows[299_999].Line != 300_000 {
		t.Errorf("%v, %v", took, err)
	}
}
