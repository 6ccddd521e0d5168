package pages

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"jurat/evidence"
	"jurat/internal/subject"
	"jurat/jurattest"
)

// lengthy is a text of many lines that has a needle in its middle, where no page that shows the beginning has it.
func lengthy(bytes int) string {
	line := "The parcel was scanned in Kassel, and nothing else was noted.\n"
	text := strings.Repeat(line, bytes/len(line)+1)
	return text[:len(text)/2] + " needle " + text[len(text)/2:]
}

// lengthyTrial tries a case with tool results, calls and speeches of these sizes.
func lengthyTrial(t testing.TB, h *jurattest.House, messages, bytes int) []*evidence.Record {
	t.Helper()
	var talk []string
	for i := range messages / 3 {
		talk = append(talk, fmt.Sprintf(`{"role":"user","content":"Where is parcel %d?"}`, i),
			fmt.Sprintf(`{"role":"assistant","content":%s,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"get_parcel","arguments":%s}}]}`,
				quoted(t, lengthy(bytes)), i, quoted(t, `{"note":`+quoted(t, lengthy(bytes))+`}`)),
			fmt.Sprintf(`{"role":"tool","tool_call_id":"c%d","content":%s}`, i, quoted(t, lengthy(bytes))))
	}
	c, err := subject.New([]byte(`{"name":"Parcel agent","description":"d","version":"1.0.0","url":"https://parcels.example/a2a","protocolVersion":"0.3.0","skills":[]}`),
		[]byte("["+strings.Join(talk, ",")+"]"))
	check(t, err)
	return try(t, h, c)
}

// everyWhole makes the pages with long texts, and those that show them whole.
func everyWhole(t testing.TB, h *jurattest.House) map[string]Page {
	t.Helper()
	court := courtOf(t, lengthyTrial(t, h, 12, 30_000))
	found, none := &Mentions{Trial: court.ID, Query: "needle"}, &Mentions{Trial: court.ID, Query: "haystack"}
	found.Find(court, func(text string) (string, bool) { return "a needle here", strings.Contains(text, "needle") })
	record := h.Seal(t, evidence.Payload{AgentID: "courier", RequestID: "r", Timestamp: "2026-01-01T00:00:00Z", Model: "m", ModelVersion: "1",
		Prompt: value(t, "What now?"), Response: value(t, "Call."), Parameters: []byte(`{}`)}, "/response")
	withheld := *record
	withheld.Disclosures = nil
	brief := courtOf(t, lengthyTrial(t, h, 3, 300))
	return map[string]Page{"lengthy": court, "message": brief.WholeMessage(2), "result": brief.WholeMessage(3), "member": WholeMember(record, "response"), "member, withheld": WholeMember(&withheld, "response"),
		"mentions": found, "mentions, none": none, "mentions, refused": &Mentions{Trial: court.ID, Problem: "text: give what to look for"}}
}

// TestLongTextsAreNotCarried: the courtroom, and the page of a record, carry only the beginning of a long text, say so with its length, and
// lead to the page that has it whole. A shorter text is whole.
func TestLongTextsAreNotCarried(t *testing.T) {
	h := jurattest.New(t)
	records := lengthyTrial(t, h, 3, 30_000)
	court := courtOf(t, records)
	page := write(t, Frame{Path: "/"}, court)
	if strings.Contains(page, "needle") || strings.Count(page, `class="cut"`) != 3 {
		t.Errorf("the courtroom carries the middle of a long text, or %d beginnings, want 3", strings.Count(page, `class="cut"`))
	}
	for part, href := range map[string]string{"text": "/messages/3#text", "speech": "/messages/2#text", "arguments": "/messages/2#call-1"} {
		if !strings.Contains(page, `data-whole="/submissions/`+court.ID+href+`"`) {
			t.Errorf("no way to the whole %s", part)
		}
	}
	result := lengthy(30_000)
	if says := fmt.Sprintf("Show all: %d characters, %d lines", len(result), lines(result)); !strings.Contains(page, says) || strings.Count(page, "Only the beginning.") != 3 {
		t.Errorf("the page does not say %q", says)
	}
	for number, want := range map[int][]string{2: {result, `{"note":` + quoted(t, result) + `}`}, 3: {result}} {
		found := passages(parse(t, write(t, Frame{Path: "/"}, court.WholeMessage(number))))
		for _, text := range want {
			if !found[text] {
				t.Errorf("the page of message %d does not show %d characters unchanged", number, len(text))
			}
		}
	}
	if court.WholeMessage(0) != nil || court.WholeMessage(4) != nil {
		t.Error("there is a page of a message that is not there")
	}
	sealed := sealedOf(t, h, records[0], "en")
	page = write(t, Frame{Path: "/"}, sealed)
	if strings.Contains(page, "needle") || !strings.Contains(page, `data-whole="/records/`+records[0].Payload.RecordID+`/member?name=response#text"`) {
		t.Error("the page of the submission carries it whole, or does not lead to it")
	}
	if whole := WholeMember(records[0], "response"); !passages(parse(t, write(t, Frame{Path: "/"}, whole)))[sealed.Output[0].Text] {
		t.Error("the page of the member does not show it unchanged")
	}
	if WholeMember(records[0], "nothing") != nil {
		t.Error("there is a page of a member that is not there")
	}
}

// TestExtent: what is as long as allowed is whole; a beginning has whole characters, and few lines.
func TestExtent(t *testing.T) {
	if e := extent(strings.Repeat("я", 50), 100, "/x"); e.Href != "" || len(e.Text) != 100 || e.Chars != 50 || e.Lines != 1 {
		t.Errorf("%+v", e)
	}
	if e := extent(strings.Repeat("я", 51), 100, "/x"); e.Href != "/x" || e.Text != strings.Repeat("я", 51) { // it is shorter than a beginning
		t.Errorf("%+v", e)
	}
	long := "a" + strings.Repeat("я", 5000)
	if e := extent(long, wholeData, "/x"); !utf8.ValidString(e.Text) || !strings.HasPrefix(long, e.Text) || len(e.Text) != beginBytes-1 || e.Chars != 5001 {
		t.Errorf("a beginning of %d bytes: %q", len(e.Text), e.Text)
	}
	if e := extent(strings.Repeat("line\n", 5000), wholeData, "/x"); e.Lines != 5000 || lines(e.Text) != beginLines {
		t.Errorf("a beginning of %d lines of %d", lines(e.Text), e.Lines)
	}
}
