package trustlist

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

const info = "http://uri.etsi.org/TrstSvc/TrustedList/SvcInfoExt/"

func oid(t testing.TB, text string) x509.OID {
	t.Helper()
	id, err := x509.ParseOID(text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestRealQualifications reads all qualifications of the published lists of Belgium and Estonia.
func TestRealQualifications(t *testing.T) {
	for _, file := range []string{"tsl-be-v6.xml", "tsl-ee.xml"} {
		raw := realFile(t, file)
		list := realList(t, file).list
		elements, qualifiers := 0, 0
		for _, s := range list.Services {
			for _, state := range s.States {
				elements += len(state.Qualifications)
				for _, q := range state.Qualifications {
					qualifiers += len(q.Qualifiers)
				}
				if _, err := state.Qualifiers(&x509.Certificate{}); err != nil {
					t.Errorf("%s: %v: %v", file, state.Names, err)
				}
			}
		}
		if want := bytes.Count(raw, []byte("QualificationElement>")) / 2; elements != want || want == 0 {
			t.Errorf("%s: %d elements, want %d", file, elements, want)
		}
		if want := bytes.Count(raw, []byte("Qualifier uri=")); qualifiers != want {
			t.Errorf("%s: %d qualifiers, want %d", file, qualifiers, want)
		}
	}
}

// TestRealCriteria asks published criteria about certificates.
func TestRealCriteria(t *testing.T) {
	all := map[string][]string{}
	for _, file := range []string{"tsl-be-v6.xml", "tsl-ee.xml"} {
		for _, s := range realList(t, file).list.Of(QualifiedCertificates) {
			for _, certificate := range []*x509.Certificate{
				{KeyUsage: x509.KeyUsageContentCommitment},
				{KeyUsage: x509.KeyUsageDigitalSignature},
				{Policies: []x509.OID{oid(t, "2.16.56.1.1.1.2.1")}},
			} {
				found, err := s.States[0].Qualifiers(certificate)
				if err != nil {
					t.Fatal(err)
				}
				key := fmt.Sprint(s.Territory, int(certificate.KeyUsage), len(certificate.Policies))
				all[key] = append(all[key], found...)
			}
		}
	}
	for key, want := range map[string]string{"EE2 0": "QCForESig", "EE1 0": "QCWithQSCD", "BE0 1": "QCQSCDStatusAsInCert"} {
		if !slices.Contains(all[key], info+want) {
			t.Errorf("%s: %v, want %s", key, all[key], want)
		}
	}
	if slices.Contains(all["EE1 0"], info+"QCForESig") {
		t.Error("a certificate for authentication is one for signatures")
	}
}

// element wraps an extension into the only service of a list, and returns the state of that service.
func stateWith(t testing.TB, extension string) *State {
	t.Helper()
	d := newDraft(t)
	doc := strings.Replace(string(d.build(t)), "</StatusStartingTime>", `</StatusStartingTime><ServiceInformationExtensions><Extension Critical="true">`+extension+`</Extension></ServiceInformationExtensions>`, 1)
	u, err := Parse([]byte(doc))
	if err != nil {
		t.Fatalf("%v\n%s", err, doc)
	}
	return &u.list.Services[0].States[0]
}

// TestCriteria takes each way in which criteria hold, and each in which they cannot be read.
func TestCriteria(t *testing.T) {
	const head = `<q:Qualifications xmlns:q="` + qualifications + `" xmlns:x="` + xadesSpace + `"><q:QualificationElement><q:Qualifiers><q:Qualifier uri="u"></q:Qualifier></q:Qualifiers>`
	const tail = `</q:QualificationElement></q:Qualifications>`
	usage := func(bit, value string) string {
		return `<q:KeyUsage><q:KeyUsageBit name="` + bit + `">` + value + `</q:KeyUsageBit></q:KeyUsage>`
	}
	policy := func(ids ...string) string {
		text := `<q:PolicySet>`
		for _, id := range ids {
			text += `<q:PolicyIdentifier><x:Identifier>` + id + `</x:Identifier></q:PolicyIdentifier>`
		}
		return text + `</q:PolicySet>`
	}
	list := func(assert string, parts ...string) string {
		return `<q:CriteriaList assert="` + assert + `">` + strings.Join(parts, "") + `</q:CriteriaList>`
	}
	certificate := &x509.Certificate{KeyUsage: x509.KeyUsageContentCommitment, Policies: []x509.OID{oid(t, "1.2.3"), oid(t, "1.2.4")}}
	yes, no := usage("nonRepudiation", "true"), usage("digitalSignature", "true")
	for criteria, want := range map[string]string{
		list("all", yes): "u", list("all", yes, no): "", list("all", no): "",
		list("atLeastOne", no, yes): "u", list("atLeastOne", no): "",
		list("none", no): "u", list("none", no, yes): "",
		list("all", usage("digitalSignature", "false")):      "u",
		list("all", policy("1.2.3")):                         "u",
		list("all", policy("urn:oid:1.2.3", "1.2.4")):        "u",
		list("all", policy("1.2.3", "1.2.5")):                "",
		list("all", yes, list("none", policy("1.2.5"))):      "u",
		list("all", yes, list("none", policy("1.2.3"))):      "",
		list("all", yes, `<q:Description>d</q:Description>`): "u",

		list("most", yes): "?",
		list("all"):       "?",
		`<q:CriteriaList>` + yes + `</q:CriteriaList>`:             "?",
		list("all", `<q:otherCriteriaList></q:otherCriteriaList>`): "?",
		list("all", usage("cRLSign", "true")):                      "?",
		list("all", usage("nonRepudiation", "1")):                  "?",
		list("all", `<q:KeyUsage></q:KeyUsage>`):                   "?",
		list("all", `<q:PolicySet></q:PolicySet>`):                 "?",
		list("all", yes) + list("all", yes):                        "?",
		"":                                                         "?",
	} {
		found, err := stateWith(t, head+criteria+tail).Qualifiers(certificate)
		if want == "?" {
			if !errors.Is(err, ErrCriteria) {
				t.Errorf("%s: %v, %v", criteria, found, err)
			}
			continue
		}
		if got := strings.Join(found, " "); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", criteria, got, err, want)
		}
	}
	for _, broken := range []string{`<q:Qualifications xmlns:q="` + qualifications + `">text</q:Qualifications>`,
		`<q:Qualifications xmlns:q="` + qualifications + `"><q:Other></q:Other></q:Qualifications>`} {
		if _, err := stateWith(t, broken).Qualifiers(certificate); !errors.Is(err, ErrCriteria) {
			t.Errorf("%s: %v", broken, err)
		}
	}
	if found, err := stateWith(t, `<q:Qualifications xmlns:q="`+qualifications+`"></q:Qualifications>`).Qualifiers(certificate); err != nil || len(found) > 0 {
		t.Errorf("no qualification: %v, %v", found, err)
	}
}
