/** Registrable domains by the public suffix list, private section included. Large to load: import it when first needed, never at start. */
import { getDomain, getPublicSuffix } from "tldts";

const OPTIONS = { allowPrivateDomains: true, extractHostname: false, validateHostname: false } as const;

/** `host` without port, lower case; a single trailing dot means the same host. */
function bare(host: string): string {
  const lower = host.toLowerCase();
  return lower.endsWith(".") ? lower.slice(0, -1) : lower;
}

const IPV4 = /^\d{1,3}(?:\.\d{1,3}){3}$/;
const isAddress = (host: string): boolean => host.startsWith("[") || host.includes(":") || IPV4.test(host);

/** The registrable domain of a host without port; null for addresses, public suffixes and single labels. */
export function registrableDomain(host: string): string | null {
  const name = bare(host);
  return name === "" || name.startsWith(".") || isAddress(name) ? null : getDomain(name, OPTIONS);
}

/** What belongs together as one site: the registrable domain, or the host itself where there is none. */
export function siteOf(host: string): string {
  return registrableDomain(host) ?? bare(host);
}

/** Is this domain one under which anybody may register (`com`, `co.uk`, `github.io`)? Single labels are. */
export function isPublicSuffix(domain: string): boolean {
  const name = bare(domain);
  return name !== "" && !isAddress(name) && getPublicSuffix(name, OPTIONS) === name;
}
