/** Reads the file of cookies that a crawl starts with; what its lines mean is rules/cookie-file.ts. */
import { readFile } from "node:fs/promises";
import { CrawlError } from "./core/errors.ts";
import type { Cookie } from "./core/frontier.ts";
import type { Logger } from "./core/log.ts";
import { parseCookieFile } from "./rules/cookie-file.ts";

/** Reads a cookie file; lines that are wrong are logged by number, a file that cannot be read is the user's to mend. */
export async function readCookies(file: string, log: Logger): Promise<readonly Cookie[]> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (cause) {
    const message = `cannot read the cookie file ${file}: ${cause instanceof Error ? cause.message : String(cause)}`;
    throw new CrawlError("invalid-options", message, { cause, problems: [{ option: "cookies", message }] });
  }
  const { cookies, problems } = parseCookieFile(text);
  for (const { line, message } of problems) log("warn", "cookie skipped", { file, line, why: message });
  return cookies;
}
