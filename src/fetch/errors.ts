/** What an error of Node or undici means for a page: its code, whether trying again can help, and a short sentence without internals. */
import type { ErrorCode } from "../core/records.ts";

export interface Failure {
  readonly code: ErrorCode;
  readonly retryable: boolean;
  readonly message: string;
}

const failure = (code: ErrorCode, retryable: boolean, message: string): Failure => Object.freeze({ code, retryable, message });

/** Failures that we find ourselves. */
export const FAILURES = {
  connectTimeout: failure("timeout", true, "no connection in time"),
  headTimeout: failure("timeout", true, "no answer in time"),
  idleTimeout: failure("timeout", true, "the server stopped sending"),
  totalTimeout: failure("timeout", true, "the answer took too long"),
  cut: failure("reset", true, "the answer ended too early"),
  codingCut: failure("reset", true, "the compressed body ends too early"),
  codingDamaged: failure("decode", false, "the body is not compressed as its Content-Encoding says"),
  blocked: failure("blocked-address", false, "the address is not public"),
  transferCoding: failure("protocol", false, "unknown transfer coding"),
  proxyCredentials: failure("connect", false, "the proxy asks for credentials"),
  proxyRefused: failure("connect", true, "the proxy refused the connection"),
} as const;

const BY_CODE: Readonly<Record<string, Failure>> = {
  ENOTFOUND: failure("dns", true, "host name not found"),
  ENODATA: failure("dns", true, "host name has no address"),
  EAI_AGAIN: failure("dns", true, "host name lookup failed for now"),
  ECONNREFUSED: failure("connect", true, "connection refused"),
  EHOSTUNREACH: failure("connect", true, "host unreachable"),
  EHOSTDOWN: failure("connect", true, "host down"),
  ENETUNREACH: failure("connect", true, "network unreachable"),
  ENETDOWN: failure("connect", true, "network down"),
  EADDRNOTAVAIL: failure("connect", true, "no local address available"),
  EACCES: failure("connect", false, "connection not permitted"),
  EPERM: failure("connect", false, "connection not permitted"),
  EMFILE: failure("connect", true, "too many open files"),
  ENFILE: failure("connect", true, "too many open files"),
  ETIMEDOUT: failure("timeout", true, "no connection in time"),
  ECONNRESET: failure("reset", true, "connection reset"),
  ECONNABORTED: failure("reset", true, "connection aborted"),
  EPIPE: failure("reset", true, "connection closed"),
  UND_ERR_SOCKET: failure("reset", true, "connection closed"),
  UND_ERR_INFO: failure("reset", true, "connection closed"),
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: failure("reset", true, "the answer is not as long as it says"),
  UND_ERR_HEADERS_OVERFLOW: failure("protocol", false, "the header block is too large"),
  // undici asserts what its parser lets pass, such as a status below 100.
  ERR_ASSERTION: failure("protocol", false, "the answer is not valid HTTP"),
  UND_ERR_INVALID_ARG: failure("protocol", false, "the request cannot be written in HTTP"),
  UND_ERR_NOT_SUPPORTED: failure("protocol", false, "the request cannot be written in HTTP"),
  ERR_TLS_CERT_ALTNAME_INVALID: failure("tls", false, "the certificate is for another host"),
  CERT_HAS_EXPIRED: failure("tls", false, "the certificate has expired"),
  CERT_NOT_YET_VALID: failure("tls", false, "the certificate is not valid yet"),
  DEPTH_ZERO_SELF_SIGNED_CERT: failure("tls", false, "the certificate is self-signed"),
  SELF_SIGNED_CERT_IN_CHAIN: failure("tls", false, "the certificate chain is self-signed"),
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: failure("tls", false, "the certificate cannot be verified"),
  UNABLE_TO_GET_ISSUER_CERT: failure("tls", false, "the certificate cannot be verified"),
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: failure("tls", false, "the certificate cannot be verified"),
  EPROTO: failure("tls", false, "TLS handshake failed"),
};

/** `headSeen`: the head of an answer had come. `during`: a TLS handshake was under way, which then is what failed. */
export function toFailure(error: unknown, headSeen: boolean, during: "tls" | null = null): Failure {
  const code = errorCode(error);
  // Of a head it cannot parse, undici says this whenever the head had named a length; whether the head was cut is then not known.
  if (code === "UND_ERR_RES_CONTENT_LENGTH_MISMATCH" && !headSeen) return failure("protocol", true, "the answer is not valid HTTP");
  const known = BY_CODE[code];
  if (known) return known;
  if (code.startsWith("EAI_")) return failure("dns", true, "host name lookup failed");
  if (isParserError(error))
    return error.data === "" ? FAILURES.cut : failure("protocol", headSeen, headSeen ? "the body is not valid HTTP" : "the answer is not valid HTTP");
  if (code.startsWith("ERR_SSL") || code.startsWith("ERR_TLS") || code.includes("CERT") || code.includes("CRL"))
    return failure("tls", false, "TLS handshake failed");
  return during === "tls" ? failure("tls", false, "TLS handshake failed") : failure("reset", true, "connection failed");
}

/** undici's parser error. It carries no code (in undici 8 `code` is undefined), but the bytes it stopped at: none when the connection ended first. */
export function isParserError(error: unknown): error is Error & { readonly data: string | null } {
  return error instanceof Error && error.name === "HTTPParserError" && "data" in error;
}

/** The `code` of an error; empty when it has none. */
export function errorCode(error: unknown): string {
  return typeof error === "object" && error !== null && "code" in error && typeof error.code === "string" ? error.code : "";
}
