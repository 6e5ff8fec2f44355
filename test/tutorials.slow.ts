/** The tutorials do what they say: every block runs, from top to bottom, and prints what stands below it. The longest one is tutorial-scraper.slow.ts. */
import { files, testDocument } from "./documents.ts";

for (const file of files) if (file.startsWith("docs/tutorial-") && file !== "docs/tutorial-scraper.md") testDocument(file);
