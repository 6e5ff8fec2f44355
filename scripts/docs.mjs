// `npm run docs`: writes docs/options.md from the option schema, docs/api.md from the route table.
import { writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { optionsPage } from "../src/cli/reference.ts";
import { apiPage } from "../src/service/reference.ts";

const docs = resolve(dirname(fileURLToPath(import.meta.url)), "../docs");
writeFileSync(resolve(docs, "options.md"), optionsPage());
writeFileSync(resolve(docs, "api.md"), apiPage());
