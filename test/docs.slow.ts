/** The marked code blocks of the documentation run; the README's do in docs.test.ts, those of tutorials in tutorials.slow.ts. */
import { files, testDocument } from "./documents.ts";

for (const file of files) if (file !== "README.md" && !file.startsWith("docs/tutorial-")) testDocument(file);
