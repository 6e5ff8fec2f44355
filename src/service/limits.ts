/** What one client, and all of them together, may ask of the service. Every figure is a bound on memory or time. */

export interface ServiceLimits {
  /** Bytes of a JSON body, which is parsed whole. */
  readonly jsonBytes: number;
  /** Bytes of an uploaded list, which is streamed. */
  readonly uploadBytes: number;
  /** Requests a second of one client address in the long run, and how many at once. */
  readonly requestsPerSecond: number;
  readonly requestBurst: number;
  readonly connections: number;
  /** Event streams open at a time; each holds a connection for as long as its job runs. */
  readonly eventStreams: number;
  /** For the head of a request, and for a whole one, its body included. */
  readonly headersMs: number;
  readonly requestMs: number;
  /** Without a byte in either direction. */
  readonly idleMs: number;
  /** How long a body that is refused is still read and dropped, so that its sender gets to see the answer. */
  readonly lingerMs: number;
}

export const SERVICE_LIMITS: ServiceLimits = {
  jsonBytes: 8_000_000,
  uploadBytes: 256_000_000,
  requestsPerSecond: 1_000,
  requestBurst: 3_000,
  connections: 1_000,
  eventStreams: 200,
  headersMs: 10_000,
  requestMs: 900_000,
  idleMs: 120_000,
  lingerMs: 1_000,
};

/** Records in one answer. */
export const MOST_JSON_RECORDS = 1_000;
export const MOST_STREAMED_RECORDS = 100_000;
export const USUAL_RECORDS = 100;
/** URLs of a job that an answer repeats. */
export const MOST_SHOWN_URLS = 1_000;
/** The same of each job in a list. */
export const FEW_SEEDS = 10;
