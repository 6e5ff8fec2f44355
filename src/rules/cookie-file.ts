/** Cookie files in Netscape's format, as browsers' exporters, curl and wget write them. Their text comes in as an argument. */
import type { Cookie } from "../core/frontier.ts";
import { isIpAddress, MAX_COOKIE_BYTES } from "./cookies.ts";

/** A line that was passed over. Says nothing of its value, which is a secret. */
export interface CookieFileProblem {
  /** From 1. */
  readonly line: number;
  readonly message: string;
}

const HTTP_ONLY = "#HttpOnly_";

function readLine(line: string): Cookie | string {
  const fields = line.split("\t");
  // Editors and exporters drop the tab before an empty value.
  if (fields.length !== 7 && fields.length !== 6) return `expected 7 fields separated by tabs, found ${fields.length}`;
  const [domainField = "", subdomains = "", path = "", secure = "", expires = "", name = "", value = ""] = fields;
  const domain = domainField.replace(/^\./, "").toLowerCase();
  if (!/^(?:[^\s/]+)$/.test(domain)) return "expected a host name first";
  if (!/^(?:TRUE|FALSE)$/i.test(subdomains) || !/^(?:TRUE|FALSE)$/i.test(secure)) return "expected TRUE or FALSE in the second and fourth field";
  if (!path.startsWith("/")) return 'expected a path that starts with "/" in the third field';
  if (!/^-?\d+(?:\.\d+)?$/.test(expires)) return "expected seconds since 1970 in the fifth field, 0 for a session cookie";
  if (name === "") return "expected a name in the sixth field";
  if (/[\0-\x1f\x7f;]/.test(name + value)) return "name or value holds a character that cookies may not have";
  if (Buffer.byteLength(name) + Buffer.byteLength(value) > MAX_COOKIE_BYTES) return `longer than ${MAX_COOKIE_BYTES} bytes`;
  const seconds = Number(expires);
  return {
    name,
    value,
    domain,
    hostOnly: subdomains.toUpperCase() === "FALSE" || isIpAddress(domain),
    path,
    secure: secure.toUpperCase() === "TRUE",
    expiresAt: seconds <= 0 ? null : Math.round(seconds * 1_000),
  };
}

/** Reads a cookie file: one cookie a line, seven fields separated by tabs, `#` comments, `#HttpOnly_` before the host allowed. Lines that are wrong are named and passed over. */
export function parseCookieFile(text: string): { readonly cookies: readonly Cookie[]; readonly problems: readonly CookieFileProblem[] } {
  const cookies: Cookie[] = [];
  const problems: CookieFileProblem[] = [];
  text
    .replace(/^\ufeff/, "")
    .split(/\r\n|\r|\n/)
    .forEach((raw, index) => {
      const line = raw.startsWith(HTTP_ONLY) ? raw.slice(HTTP_ONLY.length) : raw;
      if (line.trim() === "" || line.startsWith("#")) return;
      const result = readLine(line);
      if (typeof result === "string") problems.push({ line: index + 1, message: result });
      else cookies.push(result);
    });
  return { cookies, problems };
}
