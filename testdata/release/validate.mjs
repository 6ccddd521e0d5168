// Asks the CycloneDX project's own library whether lists of parts follow its schema, strictly: node validate.mjs FOLDER FILE…
// FOLDER is where the library is installed.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';

const [folder, ...files] = process.argv.slice(2);
const { Validation, Spec } = createRequire(folder + '/')('@cyclonedx/cyclonedx-library');
const validator = new Validation.JsonStrictValidator(Spec.Version.v1dot6);
for (const file of files) {
	const wrong = await validator.validate(readFileSync(file, 'utf8'));
	if (wrong !== null) {
		console.log(`${file}: ${JSON.stringify(wrong, null, 1)}`);
		process.exitCode = 1;
	}
}
