// Answers one question a line with the A2A project's own SDK for JavaScript, which stands in the folder named by the first argument.
//   {"ask": "sign", "card": …, "key": JWK, "header": …} → {"card": …}
//   {"ask": "verify", "card": …, "key": JWK}       → {"held": true or false}
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { createInterface } from 'node:readline';

const require = createRequire(pathToFileURL(process.argv[2] + '/'));
const a2a = await import(pathToFileURL(require.resolve('@a2a-js/sdk')));
const jose = await import(pathToFileURL(require.resolve('jose')));
console.debug = () => {};

async function answer({ ask, card, key, header }) {
  const imported = await jose.importJWK(key, header?.alg ?? key.alg);
  if (ask === 'sign') return { card: await a2a.generateAgentCardSignature(imported, header)(card) };
  try {
    await a2a.verifyAgentCardSignature(async () => imported)(card);
    return { held: true };
  } catch {
    return { held: false };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  try {
    console.log(JSON.stringify(await answer(JSON.parse(line))));
  } catch (error) {
    console.log(JSON.stringify({ error: String(error) }));
  }
}
