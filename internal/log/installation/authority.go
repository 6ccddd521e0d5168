package installation

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	_ "embed"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"path"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"jurat/evidence"
	"jurat/evidence/scitt"
	"jurat/internal/kit/fault"
	"jurat/internal/log/filestore"
	"jurat/internal/log/keys"
	"jurat/internal/log/ledger"
	"jurat/internal/log/ledger/storage"
	"jurat/internal/log/stamping"
	"jurat/internal/log/token"
	"jurat/internal/log/witness"
	"jurat/timestamp"
	"jurat/verify"
	"jurat/verify/trust"
)

const (
	rootYears      = 30
	authorityYears = 10

	rootCertificate      = "root.pem"
	authorityCertificate = "authority.pem"
	authorityKey         = "authority.key"
)

// Token names the hardware token on which a new installation makes the keys of its time-stamping authority.
type Token struct {
	URI    string // names the token only, without a key
	Helper string // the program that reaches it: see token.Helper.Use
}

// A founding makes the files of a new installation. It keeps its first error, after which it makes nothing.
type founding struct {
	Config
	helper *token.Helper
	id     string // that tells the installation from others
	now    time.Time
	files  []filestore.File
	err    error
}

// firstFiles returns the files of a new installation: the root certificate, which readers trust, the time-stamping one, their keys, and the log's key.
func firstFiles(ctx context.Context, c Config, helper *token.Helper) ([]filestore.File, error) {
	var random [8]byte
	rand.Read(random[:]) // never fails
	f := &founding{Config: c, helper: helper, id: hex.EncodeToString(random[:]), now: clock(c)().UTC().Truncate(time.Second)}
	signer, root := f.certified(ctx, "root", "root key", rootYears, timestamp.NewRoot)
	f.certified(ctx, "authority", "key", authorityYears, func(c timestamp.CertificateConfig) (*x509.Certificate, error) {
		return timestamp.NewCertificate(c, root, signer)
	})
	if f.err != nil {
		return nil, f.err
	}
	// The log's key is never on a token: checkpoints demand Ed25519, and helpers sign with ES256 and RS256.
	private, public, err := note.GenerateKey(nil, logName+f.id)
	if err != nil {
		return nil, fmt.Errorf("making the log's key: %w", err)
	}
	return append(f.files, filestore.File{Name: LogKeyFile, Content: []byte(private + "\n" + public + "\n")}), nil
}

// certified makes a P-256 key, in a file or on a token, and its certificate. That names the installation: where readers trust many, the name of a token's
// issuer leads to one root.
func (f *founding) certified(ctx context.Context, kind, what string, years int, issue func(timestamp.CertificateConfig) (*x509.Certificate, error)) (crypto.Signer, *x509.Certificate) {
	if f.err != nil {
		return nil, nil
	}
	key, text, err := f.newKey(ctx, "jurat-"+kind+"-"+f.id)
	if err != nil {
		f.err = fmt.Errorf("making the authority's %s: %w", what, err)
		return nil, nil
	}
	var serial [16]byte
	rand.Read(serial[:])           // never fails
	serial[0] = serial[0]&0x7f | 1 // a positive number of 16 bytes (RFC 5280, section 4.1.2.2)
	certificate, err := issue(timestamp.CertificateConfig{Key: key, Operator: f.id, Serial: new(big.Int).SetBytes(serial[:]), NotBefore: f.now, NotAfter: f.now.AddDate(years, 0, 0)})
	if f.err = err; err == nil {
		f.files = append(f.files, filestore.File{Name: path.Join(AuthorityFolder, kind+".pem"), Content: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})},
			filestore.File{Name: path.Join(AuthorityFolder, kind+".key"), Content: text})
	}
	return key, certificate
}

// newKey makes a key, in a file, or on a token under a name. It returns the text of its file, too.
func (f *founding) newKey(ctx context.Context, name string) (key crypto.Signer, text []byte, err error) {
	var reference *token.Reference
	if on := f.Token; on != nil {
		f.helper.Use(on.Helper)
		found, err := f.helper.FindOrGenerate(ctx, token.Named(on.URI, name), evidence.ES256)
		if err != nil {
			return nil, nil, err
		}
		reference = &found
	}
	if text, err = keys.Text(evidence.ES256, reference); err == nil {
		key, _, _, err = f.helper.ParseKey(text)
	}
	return key, text, err
}

func openAuthority(ctx context.Context, files filestore.Store, helper *token.Helper, now func() time.Time) (*stamping.Own, error) {
	root, err := readCertificate(ctx, files, rootCertificate)
	if err != nil {
		return nil, err
	}
	leaf, err := readCertificate(ctx, files, authorityCertificate)
	if err != nil {
		return nil, err
	}
	file := path.Join(AuthorityFolder, authorityKey)
	text, err := files.Read(ctx, file)
	if err != nil {
		return nil, err
	}
	key, _, _, err := helper.ParseKey(text)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", files.Where(file), err)
	}
	a, err := timestamp.NewAuthority(timestamp.AuthorityConfig{Key: key, Certificate: leaf, Chain: []*x509.Certificate{root}, Now: now})
	if err != nil {
		return nil, fmt.Errorf("opening time-stamping authority in %s: %w", files.Where(AuthorityFolder), err)
	}
	return &stamping.Own{Authority: a, Root: root}, nil
}

func readCertificate(ctx context.Context, files filestore.Store, name string) (_ *x509.Certificate, err error) {
	file := path.Join(AuthorityFolder, name)
	defer fault.While(&err, "reading %s", files.Where(file))
	text, err := files.Read(ctx, file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.New("want a certificate in PEM")
	}
	return x509.ParseCertificate(block.Bytes)
}

// A logKey signs checkpoints.
type logKey struct {
	signer   note.Signer
	verifier note.Verifier
	public   string // the verifier key in package note's form
}

// logName begins the origin of a log. An id follows it, because every log needs an origin of its own.
const logName = "jurat/log/"

func openLogKey(ctx context.Context, files filestore.Store) (logKey, error) {
	text, err := files.Read(ctx, LogKeyFile)
	if err != nil {
		return logKey{}, err
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) != 3 || lines[2] != "" {
		return logKey{}, fmt.Errorf("reading %s: want two lines, the signer and the verifier key", files.Where(LogKeyFile))
	}
	k := logKey{public: lines[1]}
	var signerErr, verifierErr error
	k.signer, signerErr = note.NewSigner(lines[0])
	k.verifier, verifierErr = note.NewVerifier(k.public)
	if err := errors.Join(signerErr, verifierErr); err != nil {
		return logKey{}, fmt.Errorf("reading %s: %w", files.Where(LogKeyFile), err)
	}
	return k, nil
}

// LogVerifier returns the verifier of the checkpoints of an installation's log, or an error if the log's key cannot be read.
func LogVerifier(ctx context.Context, files filestore.Store) (note.Verifier, error) {
	log, err := openLogKey(ctx, files)
	return log.verifier, err
}

// Trust returns the trust file of this installation: every key that ever signed, its authorities and its log.
func (i *Installation) Trust(ctx context.Context) (*trust.Trust, error) { return i.trustNow(ctx, nil) }

func (i *Installation) trustNow(ctx context.Context, witnesses *witness.Settings) (*trust.Trust, error) {
	history, err := i.Ledger.Keys(ctx)
	if err != nil {
		return nil, err
	}
	return i.trust(ctx, history, witnesses)
}

// history returns a function that reads what the log says about keys: nothing as long as it is not open, as Fsck does not open it.
func (i *Installation) history(read func(*ledger.Ledger, context.Context) (*keys.History, error)) func(context.Context) (*keys.History, error) {
	return func(ctx context.Context) (*keys.History, error) {
		if i.Ledger == nil {
			return keys.NewHistory(), nil
		}
		return read(i.Ledger, ctx)
	}
}

// trust makes a trust file that demands these witnesses; nil: those of the settings.
func (i *Installation) trust(ctx context.Context, history *keys.History, witnesses *witness.Settings) (*trust.Trust, error) {
	held, err := i.Keys.Keys(ctx)
	if err == nil && witnesses == nil {
		witnesses, err = witness.ReadSettings(ctx, i.Files)
	}
	if err != nil {
		return nil, err
	}
	t := &trust.Trust{Format: trust.Format, Keys: keys.Trusted(held, history), Logs: []string{i.log.public},
		Authorities: i.stampers.Trusted(), Quorum: witnesses.Quorum}
	for _, w := range witnesses.List {
		t.Witnesses = append(t.Witnesses, w.Key)
	}
	doc, err := t.Marshal()
	if err != nil {
		return nil, err
	}
	return trust.Parse(doc) // parsing it proves that a reader will accept it
}

// Receipt returns a COSE receipt (RFC 9942) for the record's entry in the log. It returns scitt.ErrNoReceipt if the record carries no proof of its
// place in this log, ledger.ErrForked if the log contradicts that proof, and the errors of the log's key.
func (i *Installation) Receipt(ctx context.Context, r *evidence.Record) ([]byte, error) {
	if i.log.signer == nil {
		return nil, fmt.Errorf("%w: the log's private key is missing", ledger.ErrReadOnly)
	}
	if r.Log != nil && r.Log.Checkpoint != "" {
		if _, err := i.Ledger.SizeAt(ctx, r.Log.Checkpoint); err != nil && !errors.Is(err, ledger.ErrCheckpoint) {
			return nil, err // the log signs no root that it does not have
		}
	}
	return scitt.SignReceipt(r, scitt.Log{Key: i.log.public, Sign: i.log.signer.Sign})
}

// locksFolder has the name that earlier programs gave it, because a process of theirs may run beside this one.
const locksFolder = "claims"

// Vouch returns ledger.ErrDamaged, wrapped, unless this installation's own keys signed the records as they are now. Of records after the last
// checkpoint, which the log does not check itself, only this shows a change.
func (i *Installation) Vouch(ctx context.Context, records ...*evidence.Record) error {
	trust, err := i.Trust(ctx)
	if err != nil {
		return err
	}
	for _, r := range records {
		report := verify.Record(r, verify.Options{Trust: trust})
		for _, g := range []verify.Guarantee{verify.Content, verify.Authentication} {
			if f := report.Of(g); f.Status != verify.Proved {
				return fmt.Errorf("%w: record %s: %s %s: %s", ledger.ErrDamaged, r.Payload.RecordID, g, f.Status, f.Reason)
			}
		}
	}
	return nil
}

// synthetic are drafts of records that nobody ever sealed.
//
//go:embed dictionary.jsonl
var synthetic []byte

// words are frequent in Japanese, Russian and English texts.
//
//go:embed words.txt
var words string

// addDictionary adds what the log's rows are compressed with, unless the newest dictionary has the present certificate
// of the built-in authority. A dictionary consists of synthetic records with time stamps of this authority. It never
// holds a user's record, because a dictionary has its texts verbatim, and must stay for as long as a row needs it.
func addDictionary(ctx context.Context, store storage.Store, files filestore.Store, authority *stamping.Own, now time.Time) error {
	certificate, err := readCertificate(ctx, files, authorityCertificate)
	if err != nil {
		return err
	}
	newest, err := store.NewestDictionary(ctx)
	if err != nil {
		return err
	}
	if newest > 0 {
		if text, err := store.Dictionary(ctx, newest); err != nil || bytes.Contains(text, certificate.Raw) {
			return err
		}
	}
	text, err := makeDictionary(authority, now)
	if err != nil {
		return fmt.Errorf("making a dictionary: %w", err)
	}
	err = store.PutDictionary(ctx, newest+1, text)
	if errors.Is(err, storage.ErrConflict) || errors.Is(err, storage.ErrDiskFull) || errors.Is(err, storage.ErrBusy) {
		return nil // another process was first, or the next opening adds it: until then rows need more room
	}
	return err
}

// makeDictionary seals the synthetic records, with a key that is then thrown away.
func makeDictionary(authority *stamping.Own, now time.Time) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	signer, err := evidence.NewSigner(key, rand.Reader)
	if err != nil {
		return nil, err
	}
	var rows []storage.Row
	for line := range bytes.Lines(synthetic) {
		draft, err := evidence.ParseDraft(line)
		if err != nil {
			return nil, err
		}
		id, err := evidence.NewRecordID(now, nil)
		if err != nil {
			return nil, err
		}
		r, err := draft.Seal(evidence.Sealing{Signers: []evidence.Signer{signer}, Time: now, RecordID: id})
		if err != nil {
			return nil, err
		}
		token, err := authority.Issue(&timestamp.Request{Imprint: r.Imprint(), CertReq: true})
		if err != nil {
			return nil, err
		}
		r.Timestamps = []evidence.Timestamp{{Kind: evidence.RFC3161, Token: token}}
		rows = append(rows, storage.RowOf(r))
	}
	return storage.NewDictionary(strings.ReplaceAll(words, "\n", " "), rows), nil
}
