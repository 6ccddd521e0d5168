// Judges a statement and its receipt with @transmute/cose and @transmute/rfc9162. The library checks ECDSA alone, so Node itself checks the
// log's Ed25519 signature, over what the library computes.
import { createPublicKey, verify } from 'node:crypto';
import { readFileSync } from 'node:fs';
import * as cose from '@transmute/cose';
import { CoMETRE } from '@transmute/rfc9162';

const input = JSON.parse(readFileSync(0, 'utf8'));
const base64url = (hex) => Buffer.from(hex, 'hex').toString('base64url');
const jwk = (key) => ({ ...key, x: base64url(key.x), ...(key.y && { y: base64url(key.y) }) });
const statement = Buffer.from(input.statement, 'hex');
const issuer = jwk(input.issuer);

const payload = await cose.attached.verifier({ resolver: { resolve: async () => issuer } }).verify({ coseSign1: statement });
JSON.parse(Buffer.from(payload).toString('utf8'));
console.log('statement valid');

const [receipt] = await cose.receipt.get(statement);
const { tag, value } = cose.cbor.decode(receipt);
const [header, unprotected, detached, signature] = value;
if (tag !== 18 || detached !== null || cose.cbor.decode(header).get(395) !== 1) throw new Error('not a receipt of RFC9162_SHA256');
const log = createPublicKey({ key: jwk(input.log), format: 'jwk' });
const verifier = {
  verify: async ({ payload }) => {
    const signed = cose.cbor.encode(['Signature1', header, cose.cbor.EMPTY_BUFFER, cose.cbor.toArrayBuffer(payload)]);
    if (!verify(null, Buffer.from(signed), log, Buffer.from(signature))) throw new Error('the log did not sign this root');
    return payload;
  },
};
const entry = new Uint8Array(unprotected.get(-70003));
await cose.receipt.inclusion.verify({ entry: await CoMETRE.RFC9162_SHA256.leaf(entry), receipt, verifier });
console.log('receipt valid');
