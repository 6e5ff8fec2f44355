// `npm run docs`: writes docs/options.md from the option schema.
import { writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { optionsPage } from "../src/cli/reference.ts";

writeFileSync(resolve(dirname(fileURLToPath(import.meta.url)), "../docs/options.md"), optionsPage());
