/** What a fetcher is told by the spec. Plain values and pure functions; what they do stands in http.ts. */
import type { HostKey } from "../core/request.ts";
import type { Lookup } from "./dns.ts";

/** Plain values of the spec (core/spec.ts), durations in ms, sizes in bytes. */
export interface FetcherOptions {
  /** Whole exchange. Connecting (name, TCP, proxy, TLS) may take 10 s of it; between two pieces of a body 15 s may pass. */
  readonly timeoutMs: number;
  /** Most decoded bytes of a body. */
  readonly maxBodySize: number;
  readonly types: "text" | "html" | "all";
  /** Whether a body of this Content-Type is downloaded (rules/media-type.ts). */
  readonly wantsBody: (contentType: string | null, types: "text" | "html" | "all") => boolean;
  readonly userAgent: string;
  /** Sent with every request; Authorization and Cookie to `seedHosts` only. */
  readonly headers: Readonly<Record<string, string>>;
  readonly hosts: Readonly<Record<HostKey, { readonly concurrency?: number | undefined; readonly headers?: Readonly<Record<string, string>> | undefined }>>;
  /** Host (key, or name without port) → `user:password`. May grow. */
  readonly auth: ReadonlyMap<string, string>;
  /** Hosts of the seeds. May grow. */
  readonly seedHosts: ReadonlySet<HostKey>;
  /** Those of them whose seeds are all https: Authorization, Cookie and `auth` are then not sent to them over http. May change. */
  readonly secureHosts?: ReadonlySet<HostKey>;
  /** Proxies that take turns; empty: those of `environment`. */
  readonly proxy: readonly string[];
  /** Variables HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY are read from here. Absent: none. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly insecure: boolean;
  readonly addresses: { readonly refusePrivate: boolean; readonly allow: readonly string[] };
  /** Most connections to one origin, unless `hosts` says otherwise. */
  readonly perHostConcurrency: number;
  /** Replaces the system's resolver. */
  readonly lookup?: Lookup;
}
