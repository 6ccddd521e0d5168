// Judges reports: node judge.mjs sarif SCHEMA FILE… or node judge.mjs markdown FILE. It uses the packages in the folder JURAT_TEST_REPORTS.
import { createRequire } from 'node:module'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const require = createRequire(join(process.env.JURAT_TEST_REPORTS, 'x.js'))
const [kind, ...files] = process.argv.slice(2)

if (kind === 'sarif') {
  const Ajv = require('ajv-draft-04').default
  const ajv = new Ajv({ strict: false, allErrors: true })
  require('ajv-formats').default(ajv)
  const validate = ajv.compile(JSON.parse(readFileSync(files.shift(), 'utf8')))
  for (const file of files) {
    if (!validate(JSON.parse(readFileSync(file, 'utf8')))) {
      console.error(file, JSON.stringify(validate.errors.slice(0, 5)))
      process.exit(1)
    }
  }
} else if (kind === 'markdown') {
  const load = (name) => import(pathToFileURL(require.resolve(name)))
  const { micromark } = await load('micromark')
  const { gfm, gfmHtml } = await load('micromark-extension-gfm')
  const text = readFileSync(files[0], 'utf8')
  // Dangerous HTML is let through, so that it shows.
  process.stdout.write(micromark(text, { allowDangerousHtml: true, extensions: [gfm()], htmlExtensions: [gfmHtml()] }))
} else {
  process.exit(2)
}
