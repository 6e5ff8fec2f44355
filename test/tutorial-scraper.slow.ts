/** The tutorial for the author of a scraper, run from top to bottom; a suite of its own, so that the others need not wait for it. */
import { testDocument } from "./documents.ts";

testDocument("docs/tutorial-scraper.md");
