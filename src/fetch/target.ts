/** From a request's URL to its origin and request target, without building URL objects. */
import type { CrawlRequest } from "../core/request.ts";

/** Where the path begins in an absolute http(s) URL without credentials. */
export function pathStart(url: string): number {
  const host = url.indexOf("://") + 3;
  for (let i = host; i < url.length; i++) {
    const code = url.charCodeAt(i);
    if (code === 0x2f || code === 0x3f || code === 0x23) return i;
  }
  return url.length;
}

/** The request target: byte for byte what `sentAs`, or else `url`, has behind its origin, without a fragment; an empty path is `/` (RFC 9112 §3.2.1). */
export function targetOf(request: CrawlRequest): string {
  const url = request.rest?.sentAs ?? request.url;
  const fragment = url.indexOf("#");
  const target = url.slice(pathStart(url), fragment < 0 ? url.length : fragment);
  return target.charCodeAt(0) === 0x2f ? target : `/${target}`;
}

/** `scheme://host[:port]` of a canonical URL. */
export function originOf(url: string): string {
  return url.slice(0, pathStart(url));
}

/** The path of a URL without query and fragment. */
export function pathOf(url: string): string {
  const start = pathStart(url);
  const end = url.slice(start).search(/[?#]/);
  return (end < 0 ? url.slice(start) : url.slice(start, start + end)) || "/";
}
